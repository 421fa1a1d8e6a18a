// SPDX-License-Identifier: Apache-2.0

// Package amrmproxy stands between an application's master and many
// ResourceManagers, and makes them look like one.
//
// A master registers, asks and finishes as it always did. The proxy forwards
// to the ResourceManager of the application's home, and starts an unmanaged
// twin of the master in each further subcluster that the split policy sends
// asks to. It merges what they answer.
//
// # Two types
//
// Session is the machine of one attempt: Step(now, event) gives actions, and
// nothing else happens. It reads no clock, holds no lock and knows no socket.
// Proxy is its driver: a goroutine and a bounded mailbox per session, which
// performs the actions and brings back what came of them as events.
//
// # Duties of whoever drives a Session
//
//  1. Perform the actions of a Step in their order.
//  2. Save: store the record; tell Saved, or SaveFailed. What depends on a
//     record (a launch, a twin's registration, the answer to register) is
//     asked for only after Saved, so nothing acts on what a restart would
//     forget.
//  3. Send: make the call to the member; tell Answered with the same sequence
//     number, be it with an error, and bound its time. The session has one call
//     under way to a member; what changes meanwhile waits in the ledger, not in
//     a queue. Only a goodbye does not wait for the beat before it.
//  4. Launch: submit the twin and wait until its token can be had; tell
//     Launched, or LaunchFailed. Launch is idempotent: after a restart it may
//     be asked for a twin that already exists.
//  5. Drop: kill the twin; tell Dropped. It too may be asked twice.
//  6. Reply: answer the master's call of that number.
//  7. Tick at Config.Tick, and Saw whenever the view or the policy changes.
//  8. After Done the session has nothing more to say and may be forgotten.
//
// Messages inside events belong to the session from then on; those inside
// actions are only to be read, since the session may send or answer the same
// one again. Fields this package does not know survive, because messages are
// pointed at and cloned, never rebuilt.
//
// The rules of ApplicationMasterProtocol (response ids, absolute asks,
// completed once) are those of Hadoop YARN 3.4.
package amrmproxy
