// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// giver plays the members: it counts ids up, and remembers how many were wanted.
type giver struct {
	t      *testing.T
	mu     sync.Mutex
	plain  bool // knows nothing of blocks
	silent int  // this many of the next calls get an error, after 10 s
	fails  error
	last   int32
	wanted []int
	users  []string
}

var ofANewerHadoop = protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), []byte("kept"))

func (g *giver) fetch(_ context.Context, user string, request []byte) ([]byte, error) {
	g.mu.Lock()
	if g.silent > 0 {
		g.silent--
		g.mu.Unlock()
		time.Sleep(10 * time.Second)
		return nil, errors.New("no answer within 10 s")
	}
	g.mu.Unlock()
	time.Sleep(time.Millisecond)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails != nil {
		return nil, g.fails
	}
	var r pb.GetNewApplicationRequestProto
	if err := r.UnmarshalVT(request); err != nil {
		g.t.Error(err)
	}
	n := yarnrpc.BlockWanted(&r)
	g.wanted, g.users = append(g.wanted, n), append(g.users, user)
	if g.plain {
		n = 1
	}
	answer := &pb.GetNewApplicationResponseProto{
		ApplicationId:     &pb.ApplicationIdProto{Id: new(g.last + 1), ClusterTimestamp: new(int64(7))},
		MaximumCapability: &pb.ResourceProto{Memory: new(int64(4096))},
	}
	yarnrpc.SetBlock(answer, n)
	answer.ProtoReflect().SetUnknown(append(answer.ProtoReflect().GetUnknown(), ofANewerHadoop...))
	g.last += int32(n)
	return answer.MarshalVT()
}

func (g *giver) set(fails error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails = fails
}

// saw returns how many ids each call wanted, and the users of the calls.
func (g *giver) saw() ([]int, []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wanted, g.users
}

// idClient asks for ids and stores the answers.
type idClient struct {
	t    *testing.T
	mu   sync.Mutex
	ids  *ids
	got  []int32
	errs []error
}

func (c *idClient) answered(body []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	var a pb.GetNewApplicationResponseProto
	if err := a.UnmarshalVT(body); err != nil {
		c.t.Error(err)
	}
	if a.GetApplicationId().GetClusterTimestamp() != 7 || a.GetMaximumCapability().GetMemory() != 4096 ||
		!bytes.Equal(a.ProtoReflect().GetUnknown(), ofANewerHadoop) {
		c.t.Errorf("answer %v with %x", &a, a.ProtoReflect().GetUnknown())
	}
	c.got = append(c.got, a.GetApplicationId().GetId())
}

// ask asks n times without waiting for answers.
func (c *idClient) ask(user string, n int) {
	for range n {
		body, err := c.ids.take(user, func() func([]byte, error) { return c.answered })
		if err != hrpc.ErrLater {
			c.answered(body, err)
		}
	}
}

// distinct is an error when an id was given twice or never.
func (c *idClient) distinct(n int) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := slices.Clone(c.got)
	slices.Sort(seen)
	if len(c.got) != n || len(slices.Compact(seen)) != n || len(c.errs) > 0 {
		c.t.Errorf("%d answers to %d calls: %v, errors %v", len(c.got), n, c.got, c.errs)
	}
}

func TestIDs(t *testing.T) {
	story := func(name string, tell func(t *testing.T, g *giver, c *idClient)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &giver{t: t}
				tell(t, g, &idClient{t: t, ids: &ids{fetch: g.fetch, users: map[string]*userIDs{}}})
			})
		})
	}
	story("a lone client's call is one call for one id", func(t *testing.T, g *giver, c *idClient) {
		for range 5 {
			c.ask("alice", 1)
			time.Sleep(20 * time.Millisecond)
		}
		c.distinct(5)
		if wanted, _ := g.saw(); !slices.Equal(wanted, []int{1, 1, 1, 1, 1}) {
			t.Errorf("wanted %v", wanted)
		}
	})
	story("a crowd shares calls", func(t *testing.T, g *giver, c *idClient) {
		c.ask("alice", 100)
		time.Sleep(time.Second)
		c.distinct(100)
		if wanted, _ := g.saw(); len(wanted) > 5 {
			t.Errorf("100 calls that came together became %v", wanted)
		}
	})
	story("calls that keep coming find ids in store", func(t *testing.T, g *giver, c *idClient) {
		for range 1000 {
			c.ask("alice", 1)
			time.Sleep(500 * time.Microsecond)
		}
		time.Sleep(time.Second)
		c.distinct(1000)
		if wanted, _ := g.saw(); len(wanted) > 70 { // 20 ids for 10 ms
			t.Errorf("1000 calls in half a second became %d: %v", len(wanted), wanted)
		}
	})
	story("members that give one at a time", func(t *testing.T, g *giver, c *idClient) {
		g.plain = true
		c.ask("alice", 50)
		time.Sleep(4 * time.Millisecond) // one call of 1 ms, then the others together
		c.distinct(50)
		if wanted, _ := g.saw(); len(wanted) > 50+idsCalls {
			t.Errorf("50 calls became %d", len(wanted))
		}
	})
	story("a silent member delays callers only briefly", func(t *testing.T, g *giver, c *idClient) {
		g.silent = 1
		c.ask("alice", 3)
		time.Sleep(idsPatience + 2*time.Millisecond)
		c.distinct(3)
		for range 5 {
			time.Sleep(time.Second)
			c.ask("alice", 1)
			time.Sleep(2 * time.Millisecond)
		}
		c.distinct(8)
		time.Sleep(10 * time.Second) // its failure concerns no caller any more
		c.ask("alice", 1)
		time.Sleep(2 * time.Millisecond)
		c.distinct(9)
	})
	story("while all members are silent, callers get errors", func(t *testing.T, g *giver, c *idClient) {
		g.silent = 1000
		c.ask("alice", 3)
		time.Sleep(time.Second)
		c.ask("alice", 3)
		time.Sleep(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		g.mu.Lock()
		defer g.mu.Unlock()
		if calls := 1000 - g.silent; len(c.errs) != 6 || calls > idsCalls {
			t.Errorf("%d of 6 were told, %d calls", len(c.errs), calls)
		}
	})
	story("users do not share", func(t *testing.T, g *giver, c *idClient) {
		c.ask("alice", 2)
		c.ask("bob", 2)
		time.Sleep(time.Second)
		c.distinct(4)
		if _, users := g.saw(); !slices.Contains(users, "alice") || !slices.Contains(users, "bob") {
			t.Errorf("asked in the names of %v", users)
		}
	})
	story("all waiting callers get a failure, and the next call tries again", func(t *testing.T, g *giver, c *idClient) {
		gone := errors.New("nobody is there")
		g.set(gone)
		c.ask("alice", 3)
		time.Sleep(time.Second)
		c.mu.Lock()
		if len(c.errs) != 3 || !errors.Is(c.errs[2], gone) || len(c.got) > 0 {
			t.Errorf("errors %v, got %v", c.errs, c.got)
		}
		c.errs = nil
		c.mu.Unlock()
		g.set(nil)
		c.ask("alice", 3)
		time.Sleep(time.Second)
		c.distinct(3)
	})
	story("what is in store grows old", func(t *testing.T, g *giver, c *idClient) {
		c.ask("alice", 1)
		time.Sleep(2 * time.Millisecond)
		c.ask("alice", 1) // two within 10 ms: ids for more
		time.Sleep(2 * idsAge)
		c.ask("alice", 1)
		time.Sleep(time.Second)
		c.distinct(3)
		if wanted, _ := g.saw(); len(wanted) != 3 || wanted[1] < 2 {
			t.Errorf("wanted %v", wanted)
		}
	})
	story("users that come and go are forgotten", func(t *testing.T, g *giver, c *idClient) {
		for i := range 3 * idsUsers {
			c.ask(fmt.Sprint("user ", i), 1)
			time.Sleep(2 * time.Millisecond)
		}
		c.distinct(3 * idsUsers)
		if len(c.ids.users) > idsUsers {
			t.Errorf("%d users are remembered", len(c.ids.users))
		}
	})
}
