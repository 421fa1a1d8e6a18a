// SPDX-License-Identifier: Apache-2.0

package hrpc

func runBenchRole(role string) { panic(role) }
