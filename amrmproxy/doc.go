// SPDX-License-Identifier: Apache-2.0

// Package amrmproxy stands between an application's AM and many
// ResourceManagers, and makes them look like one.
//
// An AM registers, asks and finishes as it always did. The proxy forwards to the
// ResourceManager of the application's home, and launches an unmanaged AM (UAM)
// in each further subcluster that the split policy sends asks to. It merges what
// they answer.
//
// # Three types
//
// Session is the state machine of one attempt: Step(now, event) returns actions,
// and nothing else happens. It reads no clock, holds no lock and knows no socket.
//
// Driver is the machine around it, from the record in the store to the end: it
// makes the session, shows it the view, looks after a silent AM. Recording keeps
// the session's record in the store.
//
// The daemon (amrmproxy/server: a goroutine and a bounded mailbox for each
// attempt) and the simulator (internal/app/sim) run all three, and LaunchUAM and
// DropUAM beside them; what differs is how a call is made and how time passes.
//
// # Duties of whoever runs a Driver
//
//  1. Before the first Step, stop the drivers that Supersede names, then
//     Recording.Load; tell Opened. Calls of the AM may come in meanwhile.
//  2. Perform the actions of a Step in their order.
//  3. Save: Recording.Save; tell Saved, or SaveFailed. What depends on a record
//     (a launch, a UAM's registration, the answer to register) is asked for only
//     after Saved, so nothing acts on what a restart would forget.
//  4. Send: make the call to the member; tell Answered with the same sequence
//     number, be it with an error, and bound its time. The session has one call
//     under way to a member; what changes meanwhile waits in the ledger, not in
//     a queue. Only a finish does not wait for the allocate before it.
//  5. NewID: Clients.NewID; tell Numbered. Launch: LaunchUAM; tell Launched, or
//     LaunchFailed. It is idempotent: after a restart it may be asked for a UAM that
//     already exists.
//  6. Drop: DropUAM; tell Dropped. It too may be asked twice.
//  7. Reply: answer the AM's call of that number.
//  8. AskHome: read the application's report; tell HomeAnswered.
//  9. Tick at Wake, and See before each Step what the view is.
//  10. After Close the driver has nothing more to say: refuse what is unanswered
//     with its error, and forget it.
//
// Messages inside events belong to the session from then on; those inside
// actions are only to be read, since the session may send or answer the same
// one again. Fields this package does not know survive, because messages are
// pointed at and cloned, never rebuilt. Of containers in answers to allocate, what only
// the AM reads may come encoded (yarnpb.Passed): the session looks at nothing else than
// Passed decodes.
//
// The rules of ApplicationMasterProtocol (response ids, absolute asks,
// completed once) are those of Hadoop YARN 3.4.
package amrmproxy
