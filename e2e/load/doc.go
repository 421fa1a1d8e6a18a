// SPDX-License-Identifier: Apache-2.0

// Package load proves creel load against creel and against Hadoop, and compares the two under the same load. Each
// benchmark runs both by turns and prints ratios, because other work on the machine affects both.
//
//	go test ./e2e/load -run '^$' -bench . -benchtime 1x -timeout 2h
//
// docs/bench/rm.md and docs/bench/router.md contain the results.
package load
