// SPDX-License-Identifier: Apache-2.0

// Package authorizer asks an outside authoriser about rights at queues: a server with the data API of Open Policy
// Agent.
//
// A question is a POST of JSON, and its answer is a boolean, or an object with a reason:
//
//	{"input": {"cluster": "c1", "user": "ann", "groups": ["staff"], "action": "submit-app", "queue": "root.prod"}}
//	{"result": true}
//	{"result": {"allow": false, "reason": "prod is closed at night"}}
//
// The package decides which answers are used: those of the last Config.Keep, and never older ones.
//
// # Promises
//
//   - No lock is held during a call. Equal questions at the same time are one call.
//   - [Authorizer.Ask] returns within Config.Timeout. [Authorizer.Known] never waits.
//   - An answer that is no clear "allow" is a denial, or a failure. An answer without a result, as Open Policy Agent
//     sends for an undefined policy, is a denial.
//   - After a failure the server is not called for a second: all questions fail at once.
//   - Answers, calls and connections are bounded in number.
//
// # The caller owes
//
// A call of Ask, outside of any owner of state, for each question that Known does not know.
package authorizer
