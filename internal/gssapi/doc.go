// SPDX-License-Identifier: Apache-2.0

// Package gssapi implements the Kerberos mechanism of GSS-API (RFC 4121) and SASL's GSSAPI (RFC 4752), both ends, as
// pure state machines: bytes in, bytes out. Time and random bytes are arguments.
//
// A ResourceManager accepts its clients by it, and creel's commands log in by it. No daemon logs in to others yet.
//
// # Contexts
//
// [Initiate] writes the client's first token: an AP-REQ with the service's ticket. [Acceptor.Accept] verifies it and
// answers with an AP-REP, which [Initiator.Finish] verifies. Both then have a [Context], which wraps messages. Mutual
// authentication is always required. The acceptor always chooses a fresh key for the context, so that recorded messages
// of another connection never fit, even after a restart has emptied [Replays].
//
// # SASL
//
// [Server] and [Client] exchange these tokens and then negotiate a [Protection]. Offer and choice are themselves
// wrapped, so no attacker on the network can weaken them. [Layer] wraps the messages that follow.
//
// # Encryption
//
// Keys have one of the four AES types of RFC 3962 and RFC 8009. DES and RC4 are rejected. The module gokrb5 has the
// ASN.1 messages and derives the keys of RFC 3962; this package encrypts, since it must keep derived keys and take
// random bytes as an argument.
package gssapi
