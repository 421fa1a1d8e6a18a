// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// overMembers returns a server whose view has these members.
func overMembers(t *testing.T, ids ...creel.SubclusterID) *Server {
	members := make([]subcluster.Status, len(ids))
	for i, id := range ids {
		members[i] = subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
	}
	view := subcluster.NewView(time.Now(), members, nil)
	pool := remote.NewPool(remote.Config{})
	t.Cleanup(func() { pool.Close() })
	return New(Config{View: func() *subcluster.View { return view }, Pool: pool})
}

func TestNodeOrderReachesOwners(t *testing.T) {
	one, two, absent := creel.NodeID{Host: "one", Port: 1}, creel.NodeID{Host: "two", Port: 1}, creel.NodeID{Host: "new", Port: 1}
	has := map[creel.SubclusterID][]creel.NodeID{"a": {one}, "b": {one, two}, "c": nil}
	gone := &remote.Unavailable{Member: "c", Err: errors.New("silent")}
	for _, c := range []struct {
		name   string
		items  []creel.NodeID
		silent error // of c, when it is asked for its nodes
		want   string
	}{
		{"each item goes to the members with its node", []creel.NodeID{two, one}, nil, "a:one b:two,one"},
		{"a node of no member goes to all", []creel.NodeID{absent}, nil, "a:new b:new c:new"},
		{"a silent member may have a node of no other", []creel.NodeID{one, absent}, gone, "silent c"},
		{"a known node does not wait for silent members", []creel.NodeID{two}, gone, "b:two"},
		{"a refusal is not silence", []creel.NodeID{two}, errors.New("refused"), "b:two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers, silent, err := OrderNodes(t.Context(), overMembers(t, "a", "b", "c"), NodeOrder[creel.NodeID, string]{
				Name: "an order", Items: c.items, Node: func(id creel.NodeID) creel.NodeID { return id },
				Has: func(_ context.Context, m *remote.Member) (func(creel.NodeID) bool, error) {
					if m.ID == "c" && c.silent != nil {
						return nil, c.silent
					}
					return func(id creel.NodeID) bool { return slices.Contains(has[m.ID], id) }, nil
				},
				Send: func(_ context.Context, m *remote.Member, items []creel.NodeID) (string, error) {
					hosts := make([]string, len(items))
					for i, id := range items {
						hosts[i] = id.Host
					}
					return strings.Join(hosts, ","), nil
				},
			})
			var got []string
			for _, p := range answers {
				got = append(got, string(p.Member)+":"+p.Value)
			}
			for _, m := range silent {
				got = append(got, "silent "+string(m.Member))
			}
			if s := strings.Join(got, " "); s != c.want || (err != nil) != (len(silent) > 0) {
				t.Errorf("%q, %v, want %q", s, err, c.want)
			}
		})
	}
}

func TestCallAboutNodeReachesItsMember(t *testing.T) {
	s, node := overMembers(t, "a", "b"), creel.NodeID{Host: "one", Port: 1}
	call := func(at creel.SubclusterID, fail error) (creel.SubclusterID, int, error) {
		who, silent, err := AtNode(t.Context(), s, node, "one:1",
			func(_ context.Context, m *remote.Member) (bool, error) {
				if m.ID == "a" && fail != nil {
					return false, fail
				}
				return m.ID == at, nil
			},
			func(_ context.Context, m *remote.Member) (creel.SubclusterID, error) { return m.ID, nil })
		return who, len(silent), err
	}
	silent := &remote.Unavailable{Member: "a", Err: errors.New("silent")}
	if who, _, err := call("b", silent); who != "b" || err != nil {
		t.Errorf("%q answers, %v, want b", who, err)
	}
	if _, n, err := call("", silent); n != 1 || !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("%d silent members, %v", n, err)
	}
	if who, _, err := call("", nil); who == "" || err != nil {
		t.Errorf("no member answers for an unknown node: %v", err)
	}
}
