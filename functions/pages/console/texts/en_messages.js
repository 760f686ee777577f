// The texts of looking through messages in English.

export const EN_MESSAGES = {
  "peek.text": "Shows messages and claims none of them. A text is looked for in id, group, tags, attributes and body of {bound} messages at a time.",
  "search.text": "With this text",
  "search.from": "Sent from",
  "search.to": "Sent until",
  "search.order": "Order",
  "search.order.oldest": "oldest first",
  "search.order.newest": "newest first",
  "search.on": "Look further",
  "search.more": "{found} found among the first {seen} messages; there are more.",
  "search.end": "{found} found among all {seen} messages.",
  "message_state.active": "active",
  "message_state.inactive": "in flight, or waits for a retry",
  "message_state.delayed": "delayed",
  "past_hours.title": "A day and a week",
  "past_hours.day": "The last day, by the hour",
  "past_hours.week": "The last week, by the hour",
  "past_hours.kept": "Kept, at the end of each hour",
  "past_hours.text": "By the hour (UTC), as the service counted them; the last hour still runs.",
};
