// SPDX-License-Identifier: Apache-2.0

// Package spnego is the login of web clients by Kerberos: HTTP's Negotiate (RFC 4559) with tokens of SPNEGO (RFC 4178),
// and the signed cookie hadoop.auth, which both Hadoop's servers and creel's read and write.
//
// # Contents
//
//   - [Login] finds the user of a request, by its ticket, its cookie or its delegation token, and answers a request
//     without one.
//   - [Client] is the other end: it shows a ticket, and verifies the server's proof.
//   - [Signer] signs cookies with one secret, as Hadoop's does.
//
// # Promises
//
//   - No user is found without a valid ticket, or a cookie that a holder of the secret signed and that has not expired.
//   - A ticket of a principal that the rules for short names reject finds no user.
//   - A delegation token sets no cookie and is no ticket, so it begets neither a longer login nor another token.
//   - A cookie names a user and nothing more: the caller decides on user.name, doAs and access lists.
//
// # The caller owes
//
// TLS: without it, a cookie can be stolen on the network and used until it expires.
package spnego
