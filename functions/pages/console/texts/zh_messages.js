// The texts of looking through messages in Chinese.

export const ZH_MESSAGES = {
  "peek.text": "显示消息，不占用任何一条。文本在每次最多 {bound} 条消息的编号、分组、标签、属性和消息体中查找。",
  "search.text": "包含文本",
  "search.from": "发送时间从",
  "search.to": "发送时间到",
  "search.order": "顺序",
  "search.order.oldest": "最早的在前",
  "search.order.newest": "最新的在前",
  "search.on": "继续查看",
  "search.more": "前 {seen} 条消息中找到 {found} 条；还有更多。",
  "search.end": "全部 {seen} 条消息中找到 {found} 条。",
  "message_state.active": "可消费",
  "message_state.inactive": "处理中或等待重试",
  "message_state.delayed": "延迟中",
  "past_hours.title": "一天与一周",
  "past_hours.day": "最近一天（按小时）",
  "past_hours.week": "最近一周（按小时）",
  "past_hours.kept": "每小时末的存量",
  "past_hours.text": "按小时（UTC）计数；最后一小时尚未结束。",
};
