// SPDX-License-Identifier: Apache-2.0

// Package load proves creel load against creel and against Hadoop, and holds the comparison of the two under the same
// load: each benchmark runs both, in turns, and prints ratios, because the machine's other work falls on both.
//
//	go test ./e2e/load -run '^$' -bench . -benchtime 1x -timeout 2h
//
// docs/bench/rm.md and docs/bench/router.md hold the results.
package load
