"""A message as the body of an HTTP request, signed."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from undertow.incidents.delivery.channels import Refused

TIMEOUT = 10.0
"""Seconds that a receiver may take to answer."""
WORTH_ANOTHER_TRY = (408, 425, 429)
"""Answers below 500 after which a message is sent again."""


class Webhook:
    """POST with a JSON body.

    Headers: ``Idempotency-Key`` is the key of the message; where there is a secret, ``X-Undertow-Timestamp`` is the
    time in seconds, ``X-Undertow-Signature`` is ``sha256=`` and the HMAC-SHA-256 of "timestamp.body" in hexadecimals.
    """

    def __init__(self, address: str, secret: str = "") -> None:
        parts = urlsplit(address)
        if parts.username or parts.password:
            raise ValueError(f"deliver: the address of a webhook must hold no password, got one for {parts.hostname}")
        self.name = parts._replace(query="", fragment="").geturl()  # queries hold secrets
        self._address, self._secret = address, secret.encode()

    def send(self, key: str, message: dict[str, Any]) -> None:
        """Any answer of 200 to 299 is taken as received; redirections are not followed."""
        body = json.dumps({"key": key, **message}, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, "User-Agent": "undertow"}
        if self._secret:
            moment = str(int(time.time()))
            headers |= {"X-Undertow-Timestamp": moment, "X-Undertow-Signature": signature(self._secret, moment, body)}
        request = Request(self._address, data=body, headers=headers, method="POST")
        try:
            with build_opener(_NoRedirect).open(request, timeout=TIMEOUT):
                pass
        except HTTPError as error:
            with error:
                if error.code < 500 and error.code not in WORTH_ANOTHER_TRY:
                    raise Refused(f"HTTP {error.code}") from error
            raise


def signature(secret: bytes, moment: str, body: bytes) -> str:
    """What the receiver computes too, and compares in constant time."""
    return "sha256=" + hmac.new(secret, moment.encode() + b"." + body, hashlib.sha256).hexdigest()


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """A redirection would turn the request into another one."""
