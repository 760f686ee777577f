// The texts of who receives in English.

export const EN_CONSUMERS = {
  "consumers": "Last receives",
  "consumers.text": "Access keys that received in the last seven days, whether or not a message came. A key is noted once in five minutes.",
  "consumers.again": "Read again",
  "consumers.more": "Show more",
  "consumers.none": "No key received in the last seven days.",
  "consumers.other": "another account's",
  "consumers.at": "Last receive",
};
