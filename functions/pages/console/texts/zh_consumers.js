// The texts of who receives in Chinese.

export const ZH_CONSUMERS = {
  "consumers": "最近的接收",
  "consumers.text": "最近七天内接收过的访问密钥，无论是否收到消息。每个密钥每五分钟记录一次。",
  "consumers.again": "重新读取",
  "consumers.more": "显示更多",
  "consumers.none": "最近七天内没有密钥接收过。",
  "consumers.other": "其他账户的密钥",
  "consumers.at": "最近一次接收",
};
