// SPDX-License-Identifier: Apache-2.0

// Package amrmproxy stands between an application's AM and many ResourceManagers, and makes them look like one.
//
// An AM registers, asks and finishes as usual. The proxy forwards to the ResourceManager of the application's home,
// and launches an unmanaged AM (UAM) in each further subcluster that the split policy sends asks to. It merges their
// answers.
//
// # Three types
//
// Session is the state machine of one attempt: Step(now, event) returns actions, and nothing else happens. It reads
// no clock, holds no lock and knows no socket.
//
// Driver is the machine around it, from the record in the store to the end: it makes the session, shows it the view,
// looks after a silent AM. Recording keeps the session's record in the store.
//
// The daemon (amrmproxy/server: a goroutine and a bounded mailbox for each attempt) and the simulator
// (internal/app/sim) run all three, together with LaunchUAM and DropUAM. They differ in how a call is made and how
// time passes.
//
// # Duties of a Driver's caller
//
//  1. Before the first Step, stop the drivers that Supersede names, then call Recording.Load; pass Opened. Calls of
//     the AM may come in meanwhile.
//  2. Perform the actions of a Step in their order.
//  3. Save: call Recording.Save; pass Saved, or SaveFailed. A call that depends on a record (a launch, a UAM's
//     registration, the answer to register) is requested only after Saved, so nothing acts on state that a restart
//     would forget.
//  4. Send: make the call to the member; pass Answered with the same sequence number, also for an error, and bound
//     its time. The session has one call under way to a member. Changes in the meantime wait in the ledger, not in a
//     queue. Only a finish does not wait for the allocate before it.
//  5. NewID: call Clients.NewID; pass Numbered. Launch: call LaunchUAM; pass Launched, or LaunchFailed. It is
//     idempotent: after a restart it may be requested for a UAM that already exists.
//  6. Drop: call DropUAM; pass Dropped. It too may be requested twice.
//  7. Reply: answer the AM's call of that number.
//  8. AskHome: read the application's report; pass HomeAnswered.
//  9. Tick at Wake, and call See with the current view before each Step.
//  10. After Close the driver has no more actions: refuse unanswered calls with its error, and forget it.
//
// Messages inside events belong to the session from then on; those inside actions are read-only, since the session
// may send or answer the same one again. Fields this package does not know survive, because messages are pointed at
// and cloned, never rebuilt. Parts of containers in allocate answers that only the AM reads may come encoded
// (yarnpb.ForwardedAllocate): the session uses only the fields that it decodes.
//
// The rules of ApplicationMasterProtocol (response ids, absolute asks, completed once) are those of Hadoop YARN 3.4.
package amrmproxy
