// SPDX-License-Identifier: Apache-2.0

// Package rm proves creel's ResourceManager with unmodified Hadoop: real NodeManagers under it, real clients and AMs
// in front of it, and a kill -9 in the middle of their work.
//
// It exports helpers that run `creel rm` as a process of its own, for the tests of other packages: [Main] from
// TestMain, [Binary] for the program, [Start] for a ResourceManager on a Hadoop configuration directory,
// [Creel.Kill9] and [Creel.Restart].
package rm
