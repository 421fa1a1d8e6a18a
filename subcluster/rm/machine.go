// SPDX-License-Identifier: Apache-2.0

package rm

// Machine is the ResourceManager of one subcluster.
type Machine struct{}
