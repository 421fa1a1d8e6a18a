// SPDX-License-Identifier: Apache-2.0

// Package webauth logs an HTTP client in at servers that ask for a Kerberos ticket (SPNEGO).
//
// # Promises
//
//   - A ticket is sent only to a server that asks for one, and is a ticket for that server alone.
//   - An answer after a login is passed on only if the server has proven that it has the key of the ticket.
//   - The cookie that follows a login is the client's: give it a jar, and each server asks once.
//
// # The caller owes
//
// Bodies that can be sent again (http.Request.GetBody), since the first answer only asks for the login.
package webauth
