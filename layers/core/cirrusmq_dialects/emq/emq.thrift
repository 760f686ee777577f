// EMQ's contract, as this service has it, in Thrift's own language. `contract.py` reads it: a field
// has a line of its own, a method one argument, and a struct stands above the structs that have it.
//
// Of a method, `served_by` names its function; `audit` marks it if its native call is in the audit.

struct Nothing {}

exception Error {
  1: i32 errorCode
  2: string errMsg
  3: string details
  4: string requestId
}

struct Version {
  1: i32 major
  2: i32 minor
  3: i32 revision
  4: string date
  5: string details
}

struct Throughput {
  1: i64 readQps
  2: i64 writeQps
}

struct QueueQuota {
  2: Throughput throughput
}

struct RedrivePolicy {
  1: string dlqName
  2: i32 maxReceiveTime
}

struct QueueAttribute {
  1: i32 delaySeconds
  2: i32 invisibilitySeconds
  3: i32 receiveMessageWaitSeconds
  4: i32 receiveMessageMaximumNumber
  5: i32 messageRetentionSeconds
  6: i32 messageMaximumBytes
  7: i32 partitionNumber
  8: map<string,string> userAttributes
}

struct QueueState {
  1: i64 createTimestamp
  2: i64 lastModifiedTimestamp
  3: i64 approximateMessageNumber
  4: i64 approximateAvailableMessageNumber
  5: i64 approximateInvisibilityMessageNumber
}

struct MessageAttribute {
  1: string type
  2: string stringValue
  3: binary binaryValue
}

struct CreateQueue {
  1: string queueName
  2: QueueAttribute queueAttribute
  3: QueueQuota queueQuota
  4: bool deadLetterQueue
  5: bool enablePriority
  6: bool topicQueue
  7: bool deleteMessageForce
  8: string defaultTagName
  9: RedrivePolicy redrivePolicy
}

struct QueueInfo {
  1: string queueName
  2: QueueAttribute queueAttribute
  3: QueueState queueState
  4: QueueQuota queueQuota
  5: bool isDeadLetterQueue
  6: RedrivePolicy redrivePolicy
  7: bool enablePriority
  8: bool topicQueue
  9: bool deleteMessageForce
  10: string defaultTagName
  11: list<string> sourceQueues
}

struct OfQueue {
  1: string queueName
}

struct OfTag {
  1: string queueName
  2: string tagName
}

struct QueueAttributes {
  1: string queueName
  2: QueueAttribute queueAttribute
}

struct QueueQuotas {
  1: string queueName
  2: QueueQuota queueQuota
}

struct QueueRedrive {
  1: string queueName
  2: RedrivePolicy redrivePolicy
}

struct DeadLetterSources {
  1: string dlqName
  2: list<string> sourceQueues
}

struct ListQueue {
  1: string queueNamePrefix
}

struct Queues {
  1: list<string> queueName
}

struct Permitted {
  1: string queueName
  2: string developerId
  3: i32 permission
}

struct Permission {
  1: i32 permission
}

struct Permissions {
  1: map<string,i32> permissionList
}

struct CreateTag {
  1: string queueName
  2: string tagName
  3: i64 startTimestamp
  4: i64 readQPSQuota
  5: string attributeName
  6: MessageAttribute attributeValue
  7: map<string,string> userAttributes
}

struct TagInfo {
  1: string queueName
  2: string tagName
  3: QueueState tagState
  4: i64 startTimestamp
  5: i64 readQPSQuota
  6: string attributeName
  7: MessageAttribute attributeValue
  8: map<string,string> userAttributes
}

struct Tags {
  1: string queueName
  2: list<string> tagName
}

struct SendMessage {
  1: string queueName
  2: string messageBody
  3: i32 delaySeconds
  4: i32 invisibilitySeconds
  5: map<string,MessageAttribute> messageAttributes
  6: string topic
  7: i32 priority
}

struct SendEntry {
  1: string entryId
  2: string messageBody
  3: i32 delaySeconds
  4: i32 invisibilitySeconds
  5: map<string,MessageAttribute> messageAttributes
  6: i32 priority
}

struct SendBatch {
  1: string queueName
  2: list<SendEntry> entries
  3: string topic
}

struct Sent {
  1: string messageID
  2: i32 bodyLength
  3: string bodyMd5
  4: i64 sendTimestamp
}

struct SentEntry {
  1: string entryId
  2: string messageID
  3: i32 bodyLength
  4: string bodyMd5
  5: i64 sendTimestamp
}

struct Failed {
  1: string id
  2: Error reason
}

struct SentBatch {
  1: list<SentEntry> successful
  2: list<Failed> failed
}

struct ReceiveMessage {
  1: string queueName
  2: i32 maxReceiveMessageNumber
  3: i32 maxReceiveMessageWaitSeconds
  4: string attributeName
  5: MessageAttribute attributeValue
  6: string tagName
}

struct Received {
  1: string messageID
  2: string receiptHandle
  3: string messageBody
  4: map<string,string> attributes
  5: map<string,MessageAttribute> messageAttributes
}

struct OfHandle {
  1: string queueName
  2: string receiptHandle
  3: i32 invisibilitySeconds
}

struct HandleEntry {
  1: string receiptHandle
  2: i32 invisibilitySeconds
}

struct OfHandles {
  1: string queueName
  2: list<HandleEntry> entries
}

struct Settled {
  1: list<string> successful
  2: list<Failed> failed
}

struct UserQuota {
  1: Throughput throughput
  2: i64 queueNumber
}

struct OfDeveloper {
  1: string developerId
}

struct QuotaOfDeveloper {
  1: string developerId
  2: UserQuota userQuota
}

service CommonService {
  Version getServiceVersion(1: Nothing request) throws (1: Error e)
    (served_by = "account_calls.get_service_version")
  void validClientVersion(1: Version request) throws (1: Error e)
    (served_by = "account_calls.valid_client_version")
  void queryMetric(1: Nothing request) throws (1: Error e) (served_by = "account_calls.refuse")
  void setUserQuota(1: Nothing request) throws (1: Error e) (served_by = "account_calls.refuse")
  void setUserInfo(1: Nothing request) throws (1: Error e) (served_by = "account_calls.refuse")
  void getUserInfo(1: Nothing request) throws (1: Error e) (served_by = "account_calls.refuse")
  void addQueueAlertPolicy(1: Nothing request) throws (1: Error e)
    (served_by = "account_calls.refuse")
  void deleteQueueAlertPolicy(1: Nothing request) throws (1: Error e)
    (served_by = "account_calls.refuse")
  void listQueueAlertPolicies(1: Nothing request) throws (1: Error e)
    (served_by = "account_calls.refuse")
  void setQueueDailyStatisticsState(1: Nothing request) throws (1: Error e)
    (served_by = "account_calls.refuse")
  void getQueueDailyStatisticsState(1: Nothing request) throws (1: Error e)
    (served_by = "account_calls.refuse")
}

service QueueService extends CommonService {
  CreateQueue createQueue(1: CreateQueue request) throws (1: Error e)
    (served_by = "queue_calls.create_queue", audit = "native")
  void deleteQueue(1: OfQueue request) throws (1: Error e)
    (served_by = "queue_calls.delete_queue", audit = "native")
  void purgeQueue(1: OfQueue request) throws (1: Error e)
    (served_by = "queue_calls.purge_queue", audit = "native")
  QueueAttributes setQueueAttribute(1: QueueAttributes request) throws (1: Error e)
    (served_by = "queue_calls.set_part", audit = "native")
  QueueQuotas setQueueQuota(1: QueueQuotas request) throws (1: Error e)
    (served_by = "queue_calls.set_part", audit = "native")
  QueueInfo getQueueInfo(1: OfQueue request) throws (1: Error e)
    (served_by = "queue_calls.get_queue_info")
  Queues listQueue(1: ListQueue request) throws (1: Error e) (served_by = "queue_calls.list_queue")
  QueueRedrive setQueueRedrivePolicy(1: QueueRedrive request) throws (1: Error e)
    (served_by = "queue_calls.set_part", audit = "native")
  void removeQueueRedrivePolicy(1: OfQueue request) throws (1: Error e)
    (served_by = "queue_calls.remove_queue_redrive_policy", audit = "native")
  DeadLetterSources listDeadLetterSourceQueues(1: DeadLetterSources request) throws (1: Error e)
    (served_by = "queue_calls.list_sources")
  void setPermission(1: Permitted request) throws (1: Error e)
    (served_by = "account_calls.set_permission", audit = "native")
  void revokePermission(1: Permitted request) throws (1: Error e)
    (served_by = "account_calls.revoke_permission", audit = "native")
  Permission queryPermission(1: OfQueue request) throws (1: Error e)
    (served_by = "account_calls.query_permission")
  Permission queryPermissionForId(1: Permitted request) throws (1: Error e)
    (served_by = "account_calls.query_permission_for_id")
  Permissions listPermissions(1: OfQueue request) throws (1: Error e)
    (served_by = "account_calls.list_permissions")
  CreateTag createTag(1: CreateTag request) throws (1: Error e)
    (served_by = "tag_calls.create_tag", audit = "native")
  void deleteTag(1: OfTag request) throws (1: Error e)
    (served_by = "tag_calls.delete_tag", audit = "native")
  TagInfo getTagInfo(1: OfTag request) throws (1: Error e) (served_by = "tag_calls.get_tag_info")
  Tags listTag(1: OfQueue request) throws (1: Error e) (served_by = "tag_calls.list_tag")
}

service MessageService extends CommonService {
  Sent sendMessage(1: SendMessage request) throws (1: Error e)
    (served_by = "message_calls.send_message")
  SentBatch sendMessageBatch(1: SendBatch request) throws (1: Error e)
    (served_by = "message_calls.send_message_batch")
  list<Received> receiveMessage(1: ReceiveMessage request) throws (1: Error e)
    (served_by = "message_calls.receive_message")
  void changeMessageVisibilitySeconds(1: OfHandle request) throws (1: Error e)
    (served_by = "message_calls.hide")
  Settled changeMessageVisibilitySecondsBatch(1: OfHandles request) throws (1: Error e)
    (served_by = "message_calls.hide")
  void deleteMessage(1: OfHandle request) throws (1: Error e) (served_by = "message_calls.delete")
  Settled deleteMessageBatch(1: OfHandles request) throws (1: Error e)
    (served_by = "message_calls.delete")
  void deadMessage(1: OfHandle request) throws (1: Error e) (served_by = "message_calls.dead")
  Settled deadMessageBatch(1: OfHandles request) throws (1: Error e)
    (served_by = "message_calls.dead")
}

service StatisticsService extends CommonService {
  QuotaOfDeveloper getUserQuota(1: OfDeveloper request) throws (1: Error e)
    (served_by = "account_calls.get_user_quota")
  QuotaOfDeveloper getUserUsedQuota(1: OfDeveloper request) throws (1: Error e)
    (served_by = "account_calls.get_user_used_quota")
}
