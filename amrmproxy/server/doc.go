// SPDX-License-Identifier: Apache-2.0

// Package server runs the sessions of the AM-RM proxy. Each attempt has a goroutine with a bounded mailbox, which
// passes events to its amrmproxy.Driver and performs the actions.
//
//	Call      (any goroutine)      into the mailbox; the reply comes later
//	session   (one goroutine each) Driver.Step, and the actions:
//	  Send    (a goroutine for the call) to home with the AM's own token, to others with the UAM's
//	  Save    ( " )                      the UAM record, sealed, in the store
//	  Launch  ( " )                      submit unmanaged, wait, fetch the token
//	  Drop    ( " )                      kill
//	  AskHome ( " )                      is the application over?
//
// It needs the interface Members (calls as an AM), and amrmproxy's interfaces Clients (calls as a client), Store and
// Sealer (the record).
package server
