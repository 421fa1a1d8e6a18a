// SPDX-License-Identifier: Apache-2.0

// Package intrusive implements a heap and a list whose elements store their own position, for the scheduler's orders
// and the ResourceManager's expiries. Moving or removing an element needs neither a search nor an allocation.
// BenchmarkChurn and BenchmarkFlat of subcluster/rm show the benefit.
package intrusive
