"""Topics and their subscriptions: creating, changing, showing; the delivery state of a URL.

Called by the HTTP routes and by all that delivers to subscriptions.
"""
