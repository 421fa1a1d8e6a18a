// SPDX-License-Identifier: Apache-2.0

// Package rm proves creel's ResourceManager with unmodified Hadoop: real
// NodeManagers under it, real clients and masters in front of it, and a kill -9
// in the middle of their work.
package rm
