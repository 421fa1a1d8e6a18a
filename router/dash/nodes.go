// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

var nodesPage = pages.Page{
	Path: "/nodes", Name: "nodes", Title: "Nodes", Section: "nodes", Load: loadNodes,
	Command: func(c *pages.Call) string {
		line := "creel node list"
		for _, f := range [][2]string{
			{"member", "--subcluster"}, {"state", "--state"}, {"q", "--name"}, {"sort", "--sort"},
		} {
			if v := c.Query(f[0]); v != "" {
				line += " " + f[1] + " " + pages.ShellWord(v)
			}
		}
		return line
	},
}

// nodeList is a page of the nodes of one member, or of all.
type nodeList struct {
	rest.NodesDoc
	Problem             string // the reason why there are no nodes
	Member, State, Find string // filters
	OneMember           bool   // on the page of the member
	Drains              bool   // its hosts can be drained by calls
	Order               pages.Order
	First, Later        string // addresses of other pages; "" if there is none
}

func loadNodes(c *pages.Call) (any, error) { return readNodes(c, "/nodes", "") }

// readNodes loads the nodes that match the page's filters. On a member's page its id is fixed.
func readNodes(c *pages.Call, here, member string) (*nodeList, error) {
	l := &nodeList{Member: member, OneMember: member != "", State: c.Query("state"), Find: c.Query("q")}
	kept := []string{"state", l.State, "q", l.Find}
	if !l.OneMember {
		l.Member = c.Query("member")
		kept = append(kept, "member", l.Member)
	}
	l.Order = pages.NewOrder(c, here, kept...)
	err := c.Get(pages.WithQuery("/api/v1/nodes", "subcluster", l.Member, "state", l.State, "q", l.Find, "limit", "50",
		"sort", l.Order.Value(), "cursor", c.Query("cursor")), &l.NodesDoc)
	if p, ok := err.(*pages.Problem); ok {
		l.Problem = p.Error()
	} else if err != nil {
		return nil, err
	}
	kept = append(kept, "sort", l.Order.Value())
	if l.Next != "" {
		l.Later = pages.WithQuery(here, append(kept, "cursor", l.Next)...)
	}
	if c.Query("cursor") != "" {
		l.First = pages.WithQuery(here, kept...)
	}
	return l, nil
}

// nodesLink returns the address of the list of nodes of a member in a state; "" is every member, or every state.
func nodesLink(member, state string) string {
	return pages.WithQuery("/nodes", "member", member, "state", state)
}

// drainsHosts reports whether a member's hosts can be drained by calls: Hadoop's ResourceManagers read files.
func drainsHosts(version string) bool { return !(&subcluster.Member{Version: version}).ByAgent() }
