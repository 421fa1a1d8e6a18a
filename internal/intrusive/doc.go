// SPDX-License-Identifier: Apache-2.0

// Package intrusive has a heap and a list whose elements carry their own place,
// as the scheduler's orders and the ResourceManager's expiries need: an element
// is moved or taken out without a search, and nothing is allocated for it.
// BenchmarkChurn and BenchmarkFlat of subcluster/rm pay for it.
package intrusive
