// SPDX-License-Identifier: Apache-2.0

// Package rm proves creel's ResourceManager with unmodified Hadoop: real NodeManagers, real clients and AMs, and a kill
// -9 in the middle of their work.
//
// It exports helpers that run `creel rm` as a process of its own, for the tests of other packages. [Main] is called
// from TestMain, [Binary] returns the program, and [Start] starts a ResourceManager on a Hadoop configuration
// directory. [Creel.Kill9] and [Creel.Restart] kill and restart it.
package rm
