"""Every limit and default of queues and their messages, once, with its unit in its name."""

from __future__ import annotations

BATCH_MESSAGES = 16
BATCH_BYTES = 4_194_304
"""Most bytes of a send or publish, if the deployment keeps large ones in its bucket."""
TABLE_BATCH_BYTES = 262_144
"""The same if it does not. A larger batch is never in the tables, however small it packs: readers
of the stream unpack many records at once."""
OWN_RECORD_BYTES = 16_384
"""From there on a client's own process leaves a send to the service, which has the bucket. It is
the template's default of BodiesInS3From."""
REQUEST_BYTES = 1_048_576
"""Most bytes of a request's JSON without messages."""
MESSAGES_REQUEST_BYTES = 6 * BATCH_BYTES + REQUEST_BYTES
"""Most bytes of a request with messages: a body may have six bytes of JSON for each byte."""
REQUEST_TEXTS = 5_000
"""Most names and values in a request above `REQUEST_BYTES`; 16 messages have at most 1,300."""
ANSWER_BYTES = 4_700_000
"""No answer's JSON is larger: as base64, 4 bytes for 3, it leaves room for the rest of the
6,291,556 bytes beyond which Lambda loses an answer. A receive stops claiming, a page ends before
it."""
DELETE_RESULT_BYTES = 256
"""Most bytes of JSON in a receive's answer for the result of one delete, beside the receipt."""
GZIPPED_ANSWER_BYTES = 4_650_000
"""A message whose JSON alone has more when it is gzipped is refused: beside it an answer has its
state, and zlib may need a little more for a message behind other bytes."""
LARGEST_ANSWER_BYTES = MESSAGES_REQUEST_BYTES
"""Most bytes of JSON of a single message, before it is gzipped."""
CALLED_BYTES = 6_200_000
"""Most bytes of the event of a function that a queue names: Lambda takes 6,291,456."""
REPLY_SECONDS = (1, 43_200)
"""From a request to its deadline."""
REPLY_BYTES = 262_144
"""Most bytes of a reply's body and attributes: it is one item of a table."""
REPLY_REQUEST_BYTES = 6 * REPLY_BYTES + REQUEST_BYTES
"""Most bytes of a request with a reply: a byte of text may have six of JSON."""
REPLY_KEPT_MS = 300_000
"""Time after a request's deadline for which its reply can be read."""
ESCAPED_BYTES = 6
"""Most bytes of JSON for one byte of text: `\\u0001`."""
TEXT_ANSWER_BYTES = 1_000_000
"""Above it an answer's body is base64. As text a byte of it may take 6: `\\u007f`."""

RETENTION_SECONDS = (60, 1_296_000)
RETENTION_SECONDS_DEFAULT = 345_600
VISIBILITY_SECONDS = (1, 43_200)
VISIBILITY_SECONDS_DEFAULT = 30
RECEIVE_WAIT_SECONDS = (0, 30)
RECEIVE_WAIT_SECONDS_DEFAULT = 0.2
DELAY_SECONDS = (0, 1_296_000)
GIVE_BACK_DELAY_SECONDS = (0, 43_200)
MESSAGE_BYTES = (1_024, BATCH_BYTES)
MESSAGE_BYTES_DEFAULT = 65_536
QUEUE_MESSAGES = (1_000_000, 1_000_000_000)
QUEUE_MESSAGES_DEFAULT = 100_000_000
DEAD_LETTER_RECEIVES = (1, 1_000)
UNTRIED_RECEIVES = 1_000
"""Receives of a message that do not count because they were given back untried. Later ones do."""
DEAD_LETTER_AGE_SECONDS = (300, 43_200)
PARTITIONS = (1, 255)
PARTITIONS_DEFAULT = 4
MESSAGES_PER_SECOND = (1, 10_000)
"""The rates of a queue or receiver."""
PRIORITIES = (2, 32)
"""Levels that a queue may have; the highest number comes first."""
PRIORITY_PARTITIONS = (1, 16)
"""Partitions of a queue with priorities: each is looked through up to twice a second."""
AGEING_SECONDS = (10, 43_200)
"""Time for which a message waits until it counts one level higher."""

DESCRIPTION_CHARACTERS = 256
LABELS = 50
LABELS_BYTES = 4_096
"""Most bytes of all names and values in UTF-8: each call reads the document that has them."""
LABEL_CHARACTERS = 256
REASON_CHARACTERS = 256
ATTRIBUTES = 10
ATTRIBUTE_BYTES = 1_024
SDK_ATTRIBUTES = 16
"""Most attributes from an SDK of another service: its own, their types and a trace header."""
ATTRIBUTES_BYTES = 262_144
"""Most bytes of the names and values of all attributes of a call. If the messages are in an object,
these are in the log's record, an item of at most 400 KB, which readers of the stream unpack by the
dozen."""
TRACESTATE_BYTES = 512
"""W3C lets a system leave out a longer one."""
TRACED_BYTES = 262_144
"""A larger message gets no trace context from a header: its answer or event is near its limit."""
RECEIPT_CHARACTERS = 2_048

SCOPE_NAMES = 50
"""Most names in each list of an access key's scope: a call reads the key."""
KEY_GRACE_SECONDS = (0, 604_800)
KEY_GRACE_SECONDS_DEFAULT = 86_400
QUEUES_PER_ACCOUNT = 10_000
RECEIVERS_PER_QUEUE = 100
PAGE_ENTRIES = (1, 1_000)
PAGE_ENTRIES_DEFAULT = 100
REPORT_LINES = (1, 10_000)
"""Lines of invoices in one answer; its default is the most."""
RATE_INTERVAL_SECONDS = 300
RATE_INTERVALS = 12
RATES_NAMES = (1, 50)
RATES_HOURS = (1, 168)
"""Names and hours of a call that reads the rates of several resources."""
LOOKED_AT_ENTRIES = 1_000
"""Most entries that a page of a listing reads if it leaves entries out, unless it wants more."""

DEDUPLICATION_MS = 5 * 60_000
ATTEMPT_AGE_MS = 120_000
ATTEMPT_AHEAD_MS = 2_000
KEY_SLACK_MS = 130_000
"""The time in a parcel's key is at most this much before its sending: an attempt's age and skew."""
TOMBSTONE_MS = ATTEMPT_AGE_MS + 40_000
"""How long a parcel whose messages moved away stays, so that a repeated send still finds it: an
attempt of 119 s may be stored by a call that takes 29 s more."""
FAN_OUT_TOMBSTONE_MS = 86_400_000
"""The same for a parcel that fan-out made: the stream repeats a batch for as long."""
CANCELLATION_TOLD_MS = 120_000
"""Time for which a cancelled message is known as cancelled, so that the call can be repeated."""

MOVE_WAIT_MS = 60_000
"""A message that waits longer than this for a retry is re-keyed to its due time."""
FRESH_KEY_MS = 1_000
"""A fresh key shows when its parcel was written; a wait that is shorter ends while it is fresh."""
TURN_MS = 3_000
"""The least time by which a message that is given back moves behind others of its partition."""
LAG_MS = 30_000
"""A message that waited longer for its first receive is given back behind messages of its age, not
at the end."""
MOVES_PER_SECOND = 20
"""Give-backs that an execution environment moves in a partition; the others stay in place."""
WAKE_UPS_PER_SECOND, WAKE_UPS_AT_ONCE = 5, 10
"""Wake-ups of a queue that an execution environment writes: 100 of them write half of what one key
takes. A receiver that is awake polls every partition, so that few are enough."""
LONGEST_WAIT_MS = 43_200_000
"""No give-back's delay and no wait of a retry policy is longer."""
RESCUE_MS = 120_000
"""Time before its expiry at which a published message moves to the dead-letter queue: the sweep,
which runs each minute, sees it twice."""
EXPIRED_KEPT_MS = 3_600_000
"""Time after its expiry in which a published message that was received can still move there: TTL
leaves it to a sweep that is late. An alarm rings when the sweep stands still for ten minutes."""
GIVEN_ID_CHARACTERS = 128
"""Longest id in a path: the store refuses calls with far longer keys."""
OPERATION_SECONDS = 7 * 86_400
AUDIT_SECONDS = 90 * 86_400
"""Time for which a change can be shown; the log has it as long as its lines are kept."""
COUNT_EXACT_MESSAGES = 10_000
CACHE_MS = 1_000
DOCUMENT_SECONDS = (1, 5)
"""Life of documents in an environment's cache, by the deployment's parameter."""
DOCUMENTS_MS = 1_000 * DOCUMENT_SECONDS[1]
"""Longest time for which a cache of any deployment has a document that was changed."""
CALL_MS = 30_000
"""A call that began earlier writes nothing more: its function has been stopped."""
SLOW_CACHE_MS = 60_000
CLOCK_SKEW_MS = 2_000
"""Largest difference between the clocks of two functions."""
LOG_UNSURE_MS = 2 * CALL_MS + DOCUMENTS_MS + 2 * CLOCK_SKEW_MS
"""Time before and after the beginning of a queue's log in which a message may be in it or not: a
send that began with the earlier document may take as long as a call."""

INVOKE_CONCURRENCY = (1, 1_000)
INVOKE_CONCURRENCY_DEFAULT = 10
INVOKE_BATCH_DEFAULT = 10
INVOKE_SECONDS = (1, 840)
"""The function that waits for the called one is stopped after 900 s itself."""
INVOKE_SECONDS_DEFAULT = 60

TOPIC_MESSAGE_BYTES = MESSAGE_BYTES
TOPIC_MESSAGE_BYTES_DEFAULT = 65_536
TOPIC_LIFE_SECONDS = 86_400
PUBLISH_DELAY_SECONDS = (0, TOPIC_LIFE_SECONDS - 1)
TOPIC_PARTITIONS_DEFAULT = 8
PUSH_PARTITIONS = (8, 16)
"""In a new subscription to a URL: the first, or the second if its topic has more than the first. A
message costs two writes there, so that 5,000 a second need eleven. The number is stored with a
subscription and never changes."""
MAX_IN_FLIGHT = (1, 256)
MAX_IN_FLIGHT_DEFAULT = 16
POSTS_PER_SECOND = (1, 1_000)
BREAKER_SHARE = (0.1, 1.0)
BREAKER_SHARE_DEFAULT = 0.5
TOPICS_PER_ACCOUNT = 10_000
SUBSCRIPTIONS_PER_TOPIC = 100
LOG_ENTRIES = (1, 100)
LOG_ENTRIES_DEFAULT = 16
ATTEMPT_FRESH_MS = 1_000
"""An attempt this old still gives its time to a publish's key; readers of logs hold back more."""
ORDER_SLACK_MS = ATTEMPT_AHEAD_MS + ATTEMPT_FRESH_MS
"""Most by which a message that precedes another one in a group's order may have a later key in the
log, if clients' clocks made the keys; functions' clocks add their difference."""
LOG_HELD_BACK_MS = 2_000
"""A newer record may still be overtaken by a publish that began before it."""
TOKEN_SECONDS = 3 * 86_400

CHECK_AFTER_SECONDS = (1, 3_600)
CHECK_AFTER_SECONDS_DEFAULT = 60
CHECKS = (1, 100)
CHECKS_DEFAULT = 15
"""How often the producers of a half message are asked for their decision."""
HALF_LIFE_MS = 86_400_000
"""A half message that is not decided by then is rolled back, asked for or not."""
DECIDED_MS = 86_400_000
"""Time for which the state of a half message is kept after the decision."""

SCHEDULES_PER_ACCOUNT = 1_000
SCHEDULED_MESSAGE_BYTES = 4_096
"""Most bytes of a schedule's message: a sweep reads the schedule at each of its times."""
CRON_CHARACTERS = 256
EVERY_SECONDS = (60, 31_536_000)
MISSED_TIMES = 100
"""Most times that a schedule with `missed: all` fires of its missed times."""
SCHEDULE_AHEAD_MS = 120_000
"""A sweep fires times that are due within it."""
SCHEDULE_CHANGE_MS = SCHEDULE_AHEAD_MS + 60_000
"""A change of a schedule is in force for later times: what a sweep that read the schedule before
the change may have fired, and the time of a call with the difference of two clocks."""
SCHEDULE_LATE_MS = 60_000
"""A time that is over for longer when a sweep comes was missed."""
SCHEDULE_RETENTION_SECONDS = 300
"""The least retention of a queue with schedules: a message is put 120 s before its time."""
