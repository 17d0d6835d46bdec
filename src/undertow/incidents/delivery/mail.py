"""A message as an e-mail, handed to an SMTP host."""

from __future__ import annotations

import json
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote

from undertow.incidents.delivery.channels import Refused

TIMEOUT = 20.0
"""Seconds that a mail server may take to answer."""


@dataclass(frozen=True)
class Mail:
    """E-mail to some addresses; encrypted where the host can, always before a password is sent."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    user: str = ""
    password: str = ""
    encrypted: bool = False

    @property
    def name(self) -> str:
        """Without the password."""
        return f"mail to {', '.join(self.to)} by {self.host}:{self.port}"

    @classmethod
    def at(cls, parts: SplitResult, password: str) -> Mail:
        """By its address, smtp://[user@]host[:port]/?to=…&from=…"""
        query = parse_qs(parts.query)
        to = tuple(one.strip() for text in query.get("to", []) for one in text.split(",") if one.strip())
        if not to or any("@" not in one or "\n" in one for one in to):
            raise ValueError(f"deliver: smtp://{parts.hostname} must name who gets the mail, ?to=a@b.org, got {to}")
        if parts.password:
            raise ValueError("deliver: the address of a mail host must hold no password, use UNDERTOW_SMTP_PASSWORD")
        encrypted = parts.scheme == "smtps"
        port = parts.port or (465 if encrypted else 25)
        sender = query.get("from", [f"undertow@{parts.hostname}"])[0]
        return cls(parts.hostname or "", port, sender, to, unquote(parts.username or ""), password, encrypted)

    def send(self, key: str, message: dict[str, Any]) -> None:
        """One mail to all; its Message-ID follows from the key."""
        made = self.made(key, message)
        context = ssl.create_default_context()
        try:
            with self._connected(context) as host:
                if not self.encrypted and host.has_extn("starttls"):
                    host.starttls(context=context)
                    host.ehlo()
                elif self.user and not self.encrypted:
                    raise Refused(f"{self.host} does not encrypt, and the password is not sent in the clear")
                if self.user:
                    host.login(self.user, self.password)
                host.send_message(made)
        except smtplib.SMTPResponseException as error:
            if 500 <= error.smtp_code < 600:
                raise Refused(f"{self.host} answered {error.smtp_code}") from error
            raise
        except smtplib.SMTPRecipientsRefused as error:
            if all(500 <= code < 600 for code, _ in error.recipients.values()):
                raise Refused(f"{self.host} refused all recipients") from error
            raise

    def made(self, key: str, message: dict[str, Any]) -> EmailMessage:
        """The mail."""
        incident = message["incident"]
        made = EmailMessage()
        subject = f"[undertow] {message['stream']}: incident {incident['id']} {message['what']}, {incident['where']}"
        made["Subject"] = " ".join(subject.split())[:200]
        made["From"], made["To"], made["Message-ID"] = self.sender, ", ".join(self.to), f"<{key}@undertow>"
        details = json.dumps(incident, ensure_ascii=False, indent=1)
        made.set_content(f"{incident['sentence']}.\n\n{details}\n")
        return made

    def _connected(self, context: ssl.SSLContext) -> smtplib.SMTP:
        if self.encrypted:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT, context=context)
        host = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT)
        host.ehlo()
        return host
