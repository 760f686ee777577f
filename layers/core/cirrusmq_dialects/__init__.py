"""Dialects: programs that were written for another service's SDK, answered as that service does.

A dialect translates in, calls the core's operations, translates out. It decides nothing that the
core decides, keeps no state, and no line of the core knows that there are dialects.

    calling.py      event -> Call; Answer -> what the API takes
    asking.py       a call with its caller, and the listings of the core
    bodies.py       values of messages, to the core and from it
    messages.py     receiving, and hiding what was received
    router.py       whose call it is, by path and headers; imports that dialect alone
    aws_signature.py    AWS Signature Version 4, of SQS and SNS
    signing.py      key id and signature -> Caller; the window of time; HMAC in base64
    own_names.py    the core's refusals by a dialect's names of parameters
    trace_headers.py    the trace of a call
    reporting.py    lines of the audit and of unexpected errors
    sdk_attributes.py   names and types of attributes that the core has no place for
    aliyun/ cmq/ emq/ sns/ sqs/   signature, reading, writing, errors: values; calls on the core
"""
