// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// A decision is a function of a view, a submission and a random source, and carries its reason.
func ExamplePolicy_Home() {
	view := subcluster.NewView(time.Unix(0, 0), []subcluster.Status{
		{
			Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive,
			Load: subcluster.Load{Metrics: subcluster.ClusterMetrics{
				TotalMB:               100_000,
				AvailableMB:           50_000,
				TotalVirtualCores:     100,
				AvailableVirtualCores: 50,
				ActiveNodes:           10,
			}},
		},
	}, nil)
	submission := policies.Submission{Queue: "root.default", Size: creel.NewResource(1024, 1)}

	home, _, err := policies.Default().Home(view, submission, nil, rand.New(rand.NewPCG(1, 2)))
	fmt.Println(home, err)
	// Output: sc-1 <nil>
}
