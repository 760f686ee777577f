<?php
// Verifies a post of the service, as the manual shows it.

/** Whether the service posted this; the names of $headers are in lower case. */
function is_genuine(string $secret, array $headers, string $body): bool
{
    $sent = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($sent) || abs(time() - (int) $sent) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $signed = ($headers['webhook-id'] ?? '') . '.' . $sent . '.' . $body;
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

// Run by a test: a line of JSON for each post; prints whether it is genuine.
while (($line = fgets(STDIN)) !== false) {
    $post = json_decode($line, true);
    $genuine = is_genuine($post['secret'], $post['headers'], base64_decode($post['body']));
    echo $genuine ? "true\n" : "false\n";
}
