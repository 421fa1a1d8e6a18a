// SPDX-License-Identifier: Apache-2.0

// Package amrmproxy is the AM-RM proxy: for an application's AM it makes many ResourceManagers look like one.
//
// An AM registers, asks and finishes as usual. The proxy forwards calls to the ResourceManager of the application's
// home. It launches an unmanaged AM (UAM) in each further subcluster that gets asks by the split policy, and merges
// all answers.
//
// # Three types
//
// Session is the state machine of one attempt. Step(now, event) returns actions and has no other effect. It reads no
// clock, and uses no lock and no socket.
//
// Driver runs a session from the record in the store to the end. It makes the session, passes the view to it, and
// asks home about a silent AM. Recording saves the session's record in the store.
//
// The daemon (amrmproxy/server: a goroutine and a bounded mailbox for each attempt) and the simulator
// (app/sim) both run all three types, with LaunchUAM and DropUAM. They differ in their calls and their
// clock.
//
// # Parts of a session
//
// The session routes events between its parts, and performs their results. None of the parts knows the session.
//
//   - conversation is the AM's side: waiting calls, response ids, the answer under construction.
//   - link is the connection to one member: the call with its explicit state (call), the UAM, the requests that wait
//     (outbox). links is the table of them.
//   - ledger has the AM's asks, as each member knows them, and its containers. It matches grants with asks.
//   - placer splits asks over the links by the queue's policy.
//   - recorder has the record and the progress of its saves.
//
// The session's own methods are in a file for each kind of event: step.go (all events), am.go (the AM's calls),
// answer.go (members' answers), uam.go (launch and end of UAMs), advance.go (calls to members), end.go (the end of the
// attempt).
//
// # Duties of a Driver's caller
//
//  1. Before the first Step, stop the drivers that Supersede returns, then call Recording.Load and pass Opened. The
//     AM may call meanwhile. Load: do it again.
//  2. Perform the actions of a Step in their order.
//  3. Save: call Recording.Save; pass Saved, or SaveFailed. The session requests a call that depends on the record (a
//     launch, a UAM's registration, the answer to register) only after Saved. So no call depends on state that a
//     restart would lose.
//  4. Send: make the call to the member with a time limit; pass Answered with the same sequence number, also for an
//     error. The session has at most one call to a member under way. Changes meanwhile wait in the ledger, not in a
//     queue. Only a finish does not wait for the allocate before it.
//  5. NewID: call Clients.NewID; pass Numbered. Launch: call LaunchUAM; pass Launched, or LaunchFailed. It is
//     idempotent: after a restart it may be requested for a UAM that already exists.
//  6. Drop: call DropUAM; pass Dropped. It too may be requested twice.
//  7. Reply: answer the AM's call of that number.
//  8. AskHome: read the application's report; pass HomeAnswered.
//  9. Tick at Wake, and call See with the current view before each Step.
//  10. After Close the driver returns no more actions: refuse unanswered calls with its error, and drop the driver.
//
// Messages in events belong to the session after Step. Messages in actions are read-only, since the session may send
// the same message again. Unknown fields survive, because messages are referenced and cloned, never rebuilt. Parts of
// containers that only the AM reads may be encoded in allocate answers (yarnpb.ForwardedAllocate). The session uses
// only the decoded fields.
//
// The rules of ApplicationMasterProtocol (response ids, absolute asks, one report of each completion) are the rules
// of Hadoop YARN 3.4.
package amrmproxy
