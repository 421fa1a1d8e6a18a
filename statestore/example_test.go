// SPDX-License-Identifier: Apache-2.0

package statestore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/memory"
)

// Two routers claim a home for the same application: both learn the same winner, and the claim's number shows which
// came first. Only a move from the current home changes it.
func Example() {
	ctx := context.Background()
	store := memory.New(memory.NewState("example", nil), time.Now)
	app := creel.ApplicationID{ClusterTimestamp: 1_700_000_000_000, ID: 1}

	home, number, _ := store.Claim(ctx, app, "sc-1", nil)
	fmt.Println(home, number)
	home, number, _ = store.Claim(ctx, app, "sc-2", nil)
	fmt.Println(home, number)

	home, _ = store.Move(ctx, app, "sc-1", "sc-2", 0, nil)
	fmt.Println(home)
	// Output:
	// sc-1 1
	// sc-1 2
	// sc-2
}
