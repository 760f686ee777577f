"""Every call of EMQ's SDK, unmodified: a program of its own, as the SDK brings its own thrift.

It runs on Python 2.7 too, with the SDK for that. Its arguments: endpoint, key id, secret, a name of
queues that no other run has, and which part of the calls.
"""

from __future__ import annotations

import http.client
import sys
import time

from emq.client import thttpclient
from emq.client.clientfactory import ClientFactory
from emq.client.requestchecker import RequestChecker
from emq.common.ttypes import GalaxyEmqServiceException
from emq.message import ttypes as m
from emq.queue import ttypes as q
from emq.statistics import ttypes as s
from rpc.auth.ttypes import Credential, UserType

# It calls a check of its own with too few values, before it sends anything.
RequestChecker.validate_redrivePolcy = lambda self, policy: None
ENDPOINT, KEY_ID, SECRET, NAME, PART = sys.argv[1:]
FACTORY = ClientFactory(Credential(UserType.APP_SECRET, KEY_ID, SECRET))
queues, messages = FACTORY.queue_client(ENDPOINT), FACTORY.message_client(ENDPOINT)
statistics = FACTORY.statistics_client(ENDPOINT)


def refusal(call, *given):
    try:
        call(*given)
    except GalaxyEmqServiceException as error:
        return error.errorCode
    raise AssertionError("it was not refused")


def receive(name, number, **more):
    found = []
    until = time.time() + 30
    while len(found) < number and time.time() < until:
        asked = m.ReceiveMessageRequest(name, maxReceiveMessageWaitSeconds=5, **more)
        found += messages.receiveMessage(asked)
    assert len(found) == number, found
    return found


def on_queues():
    quota = q.QueueQuota(q.Throughput(readQps=100, writeQps=200))
    attributes = q.QueueAttribute(invisibilitySeconds=60, userAttributes={"team": "shop"})
    made = queues.createQueue(q.CreateQueueRequest(NAME, attributes, quota, deadLetterQueue=True))
    full = made.queueName
    assert full.endswith("/" + NAME)
    assert refusal(queues.createQueue, q.CreateQueueRequest(NAME)) == 4
    changed = q.QueueAttribute(receiveMessageMaximumNumber=2, delaySeconds=1)
    told = queues.setQueueAttribute(q.SetQueueAttributesRequest(full, changed)).queueAttribute
    assert (told.invisibilitySeconds, told.receiveMessageMaximumNumber) == (60, 2)
    quota = q.QueueQuota(q.Throughput(writeQps=50))
    queues.setQueueQuota(q.SetQueueQuotaRequest(full, quota))
    info = queues.getQueueInfo(q.GetQueueInfoRequest(full))
    assert (info.isDeadLetterQueue, info.queueAttribute.userAttributes) == (True, {"team": "shop"})
    assert (info.queueQuota.throughput.readQps, info.queueQuota.throughput.writeQps) == (100, 50)
    assert info.queueState.approximateMessageNumber == 0
    assert queues.listQueue(q.ListQueueRequest(full)).queueName == [full]
    other = queues.createQueue(q.CreateQueueRequest(NAME + "-source")).queueName
    policy = q.RedrivePolicy(full, 3)
    queues.setQueueRedrivePolicy(q.SetQueueRedrivePolicyRequest(other, policy))
    asked = q.ListDeadLetterSourceQueuesRequest(full)
    assert queues.listDeadLetterSourceQueues(asked).sourceQueues == [other]
    queues.removeQueueRedrivePolicy(q.RemoveQueueRedrivePolicyRequest(other))
    assert queues.getQueueInfo(q.GetQueueInfoRequest(other)).redrivePolicy is None
    queues.setPermission(q.SetPermissionRequest(full, "partner", q.Permission.SEND_MESSAGE))
    assert queues.queryPermission(q.QueryPermissionRequest(full)).permission == 8
    asked = q.QueryPermissionForIdRequest(full, "partner")
    assert queues.queryPermissionForId(asked).permission == q.Permission.SEND_MESSAGE
    asked = q.ListPermissionsRequest(full)
    assert queues.listPermissions(asked).permissionList == {"partner": 1}
    full_control = q.SetPermissionRequest(full, "partner", q.Permission.FULL_CONTROL)
    assert refusal(queues.setPermission, full_control) == 2
    queues.revokePermission(q.RevokePermissionRequest(full, "partner"))
    assert refusal(queues.queryMetric, q.QueryMetricRequest(full)) == 1
    queues.purgeQueue(q.PurgeQueueRequest(full))
    for each in (other, full):
        queues.deleteQueue(q.DeleteQueueRequest(each))
    assert refusal(queues.deleteQueue, q.DeleteQueueRequest(full)) == 6


def on_tags():
    name = queues.createQueue(q.CreateQueueRequest(NAME)).queueName
    click = m.MessageAttribute("STRING", "click")
    tag = q.CreateTagRequest(name, "clicks", None, 100, "kind", click, {"team": "shop"})
    assert queues.createTag(tag).tagName == "clicks"
    assert refusal(queues.createTag, tag) == 12
    assert queues.listTag(q.ListTagRequest(name)).tagName == ["clicks"]
    info = queues.getTagInfo(q.GetTagInfoRequest(name, "clicks"))
    assert (info.attributeName, info.attributeValue.stringValue) == ("kind", "click")
    assert (info.readQPSQuota, info.userAttributes) == (100, {"team": "shop"})
    messages.sendMessage(m.SendMessageRequest(name, "no"))
    messages.sendMessage(m.SendMessageRequest(name, "yes", messageAttributes={"kind": click}))
    (got,) = receive(name, 1, tagName="clicks")
    assert got.messageBody == "yes"
    messages.deleteMessage(m.DeleteMessageRequest(name, got.receiptHandle))
    assert sorted(each.messageBody for each in receive(name, 2)) == ["no", "yes"]
    queues.deleteTag(q.DeleteTagRequest(name, "clicks"))
    assert refusal(queues.getTagInfo, q.GetTagInfoRequest(name, "clicks")) == 2
    queues.deleteQueue(q.DeleteQueueRequest(name))


def on_messages():
    letters = queues.createQueue(q.CreateQueueRequest(NAME + "-dead", deadLetterQueue=True))
    name = queues.createQueue(q.CreateQueueRequest(NAME)).queueName
    policy = q.RedrivePolicy(letters.queueName, 5)
    queues.setQueueRedrivePolicy(q.SetQueueRedrivePolicyRequest(name, policy))
    text = m.MessageAttribute("STRING", "v")
    sent = messages.sendMessage(m.SendMessageRequest(name, "hello", messageAttributes={"a": text}))
    entries = [m.SendMessageBatchRequestEntry(str(number), "x") for number in range(3)]
    batch = messages.sendMessageBatch(m.SendMessageBatchRequest(name, entries))
    assert [each.entryId for each in batch.successful] == ["0", "1", "2"]
    asked = m.ReceiveMessageRequest(name, attributeName="a", attributeValue=text)
    (first,) = messages.receiveMessage(asked)
    assert (first.messageID, first.messageBody) == (sent.messageID, "hello")
    assert first.attributes["md5OfBody"] == sent.bodyMd5
    assert first.messageAttributes["a"].stringValue == "v"
    rest = receive(name, 3)
    handles = [each.receiptHandle for each in rest]
    messages.changeMessageVisibilitySeconds(
        m.ChangeMessageVisibilityRequest(name, first.receiptHandle, 0)
    )
    (first,) = receive(name, 1)
    assert first.attributes["receiveCount"] == "2"
    changes = [m.ChangeMessageVisibilityBatchRequestEntry(each, 600) for each in handles]
    held = messages.changeMessageVisibilitySecondsBatch(
        m.ChangeMessageVisibilityBatchRequest(name, changes)
    )
    assert (held.successful, held.failed) == (handles, [])
    for _ in range(2):  # the second time its handle has run out, which is no error
        messages.deleteMessage(m.DeleteMessageRequest(name, handles[0]))
    messages.deadMessage(m.DeadMessageRequest(name, first.receiptHandle))
    dead = [m.DeadMessageBatchRequestEntry(handles[1])]
    assert messages.deadMessageBatch(m.DeadMessageBatchRequest(name, dead)).failed == []
    ends = [m.DeleteMessageBatchRequestEntry(handles[2])]
    done = messages.deleteMessageBatch(m.DeleteMessageBatchRequest(name, ends))
    assert done.successful == [handles[2]]
    for each in receive(letters.queueName, 2):
        assert each.attributes["sourceQueueName"] == name
    assert messages.receiveMessage(m.ReceiveMessageRequest(name)) == []
    queues.deleteQueue(q.DeleteQueueRequest(name))
    queues.deleteQueue(q.DeleteQueueRequest(letters.queueName))


def in_order():
    ranked = queues.createQueue(q.CreateQueueRequest(NAME, enablePriority=True)).queueName
    for level in (1, 16, 9):
        messages.sendMessage(m.SendMessageRequest(ranked, str(level), priority=level))
    assert [each.messageBody for each in receive(ranked, 3)] == ["16", "9", "1"]
    ordered = queues.createQueue(q.CreateQueueRequest(NAME + "-topics", topicQueue=True)).queueName
    for body in ("1", "2"):
        messages.sendMessage(m.SendMessageRequest(ordered, body, topic="t", delaySeconds=0))
    (first,) = messages.receiveMessage(m.ReceiveMessageRequest(ordered, 1))
    assert first.messageBody == "1"
    assert messages.receiveMessage(m.ReceiveMessageRequest(ordered)) == []
    messages.deleteMessage(m.DeleteMessageRequest(ordered, first.receiptHandle))
    assert [each.messageBody for each in receive(ordered, 1)] == ["2"]
    for each in (ranked, ordered):
        queues.deleteQueue(q.DeleteQueueRequest(each))


def on_statistics():
    account = queues.createQueue(q.CreateQueueRequest(NAME)).queueName.partition("/")[0]
    quota = statistics.getUserQuota(s.GetUserQuotaRequest(account)).userQuota
    used = statistics.getUserUsedQuota(s.GetUserUsedQuotaRequest(account)).userQuota
    assert 1 <= used.queueNumber <= quota.queueNumber
    assert refusal(statistics.getUserQuota, s.GetUserQuotaRequest("other")) == 13
    of_queue = [
        *(statistics.listQueueAlertPolicies, s.ListQueueAlertPoliciesRequest),
        *(statistics.getQueueDailyStatisticsState, s.GetQueueDailyStatisticsStateRequest),
        *(statistics.setQueueDailyStatisticsState, s.SetQueueDailyStatisticsStateRequest),
        *(statistics.addQueueAlertPolicy, s.AddQueueAlertPolicyRequest),
        *(statistics.deleteQueueAlertPolicy, s.DeleteQueueAlertPolicyRequest),
    ]
    for call, request in zip(of_queue[::2], of_queue[1::2], strict=True):
        assert refusal(call, request(account + "/" + NAME)) == 1
    assert refusal(statistics.setUserQuota, s.SetUserQuotaRequest(account)) == 1
    assert refusal(statistics.setUserInfo, s.SetUserInfoRequest(account)) == 1
    assert refusal(statistics.getUserInfo, s.GetUserInfoRequest(account)) == 1
    queues.deleteQueue(q.DeleteQueueRequest(account + "/" + NAME))


def refused_keys():
    wrong = ClientFactory(Credential(UserType.APP_SECRET, KEY_ID, "wrong"))
    assert refusal(wrong.queue_client(ENDPOINT).listQueue, q.ListQueueRequest()) == 13
    nobody = ClientFactory(Credential(UserType.APP_SECRET, "AKIDnobody", SECRET))
    assert refusal(nobody.queue_client(ENDPOINT).listQueue, q.ListQueueRequest()) == 13


def one_host():
    signed = thttpclient.THttpClient._THttpClient__auth_headers
    thttpclient.THttpClient._THttpClient__auth_headers = lambda self, headers: signed(
        self, {name: value for name, value in headers.items() if name != "host"}
    )
    sent = []
    put = http.client.HTTPConnection.putheader
    http.client.HTTPConnection.putheader = lambda self, name, *values: (
        sent.append(name.lower()),
        put(self, name, *values),
    )
    assert queues.listQueue(q.ListQueueRequest(NAME)).queueName == []
    assert sent.count("host") == 1, sent


globals()[PART]()
print("done")
