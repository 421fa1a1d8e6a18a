// SPDX-License-Identifier: Apache-2.0

// Package certs has the certificate of a server's TLS and the signers that clients trust: from keystores of Hadoop's
// ssl-server.xml and ssl-client.xml (JKS or PKCS12), or from PEM files, read again when the files change.
//
// # Contents
//
//   - [Store] names the files, and reads them.
//   - [Roots] reads the signers of a truststore.
//   - [Server] has the certificate in force, for new connections, and the protocol versions and ciphers.
//   - [Trust] has the signers of servers that a client accepts, may have a certificate of the client, and makes its
//     connections. For a server it verifies the certificates of clients.
//
// # Promises
//
//   - A certificate is used only if it fits its key and has not expired. So a broken or half-written file never
//     replaces a working certificate: the previous one stays, and the reason is logged once.
//   - TLS 1.2 and 1.3 only, and of TLS 1.2 only ciphers with forward secrecy and authenticated encryption.
//   - A client connects only to a server whose certificate is for the called host, by a trusted signer.
//   - Contents of files are read up to a limit.
//
// # The caller owes
//
// A task that calls [Server.Run], and keys that other users cannot read.
package certs
