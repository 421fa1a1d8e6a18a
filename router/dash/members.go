// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"net/http"

	"github.com/creelrm/creel/router/rest"
)

var membersPage = page{
	path: "/members", name: "members", title: "Members", section: "members", load: loadMembers,
	command: func(*call) string { return "creel subcluster list -o wide" },
}

var memberPage = page{
	path: "/members/{id}", name: "member", title: "Member", section: "members", load: loadMember,
	command: func(c *call) string { return "creel subcluster show " + shellWord(c.param("id")) },
}

// members are all of them.
type members struct {
	rest.SubclustersDoc
	Sum rest.OverviewDoc
}

func loadMembers(c *call) (any, error) {
	var m members
	if err := c.get("/api/v1/subclusters", &m.SubclustersDoc); err != nil {
		return nil, err
	}
	return &m, c.get("/api/v1/overview", &m.Sum)
}

// member is one, with a page of its nodes.
type member struct {
	rest.SubclusterDoc
	Frozen string
	Nodes  rest.NodesDoc
	// NodesProblem says why the nodes are not there.
	NodesProblem string
	Next         string
	State, Find  string // filters
}

func (m *member) title() string { return string(m.ID) }

// Lost reports whether its figures are old and in no sum.
func (m *member) Lost() bool {
	return m.SubclusterDoc.State == "lost" || m.SubclusterDoc.State == "deregistered"
}

func loadMember(c *call) (any, error) {
	id := c.param("id")
	var all rest.SubclustersDoc
	if err := c.get("/api/v1/subclusters", &all); err != nil {
		return nil, err
	}
	m := member{Frozen: all.Frozen, State: c.query("state"), Find: c.query("q")}
	found := false
	for _, s := range all.Subclusters {
		if string(s.ID) == id {
			m.SubclusterDoc, found = s, true
		}
	}
	if !found {
		return nil, &problem{http.StatusNotFound, "There is no member " + id, "It never registered, or was removed."}
	}
	here := "/members/" + id
	err := c.get(withQuery("/api/v1/nodes", "subcluster", id, "state", m.State, "q", m.Find, "limit", "50",
		"cursor", c.query("cursor")), &m.Nodes)
	if p, ok := err.(*problem); ok {
		m.NodesProblem = p.Error()
	} else if err != nil {
		return nil, err
	}
	if m.Nodes.Next != "" {
		m.Next = withQuery(here, "state", m.State, "q", m.Find, "cursor", m.Nodes.Next)
	}
	return &m, nil
}
