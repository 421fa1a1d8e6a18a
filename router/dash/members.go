// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"net/url"
	"strconv"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

var membersPage = pages.Page{
	Path: "/members", Name: "members", Title: "Members", Section: "members", Load: loadMembers,
	Command: func(*pages.Call) string { return "creel subcluster list -o wide" },
}

var memberPage = pages.Page{
	Path: "/members/{id}", Name: "member", Title: "Member", Section: "members", Load: loadMember,
	Command: func(c *pages.Call) string { return "creel subcluster show " + pages.ShellWord(c.Param("id")) },
}

// members is the page of all members.
type members struct {
	rest.SubclustersDoc
	Sum              rest.OverviewDoc
	Running, Waiting int64 // sums of the rows
}

func loadMembers(c *pages.Call) (any, error) {
	var m members
	if err := c.Get("/api/v1/subclusters", &m.SubclustersDoc); err != nil {
		return nil, err
	}
	for _, s := range m.Subclusters {
		m.Running, m.Waiting = m.Running+s.Apps.Running, m.Waiting+s.Apps.Waiting
	}
	return &m, c.Get("/api/v1/overview", &m.Sum)
}

// member is the page of one member, with a part of its nodes.
type member struct {
	rest.SubclusterDoc
	Frozen  string
	Nodes   *nodeList
	Drained []subcluster.HostDoc
	Heat    heat // of all nodes
}

func (m *member) PageTitle() string { return string(m.ID) }

// Tabs returns the tabs of its pages.
func (m *member) Tabs() []tab { return tabsOf("/members/", string(m.ID), "Member", false) }

// Lost reports whether its metrics are out of date and not in the sums.
func (m *member) Lost() bool {
	return m.SubclusterDoc.State == "lost" || m.SubclusterDoc.State == "deregistered"
}

func loadMember(c *pages.Call) (any, error) {
	id := c.Param("id")
	var all rest.SubclustersDoc
	if err := c.Get("/api/v1/subclusters", &all); err != nil {
		return nil, err
	}
	m := member{Frozen: all.Frozen}
	found := false
	for _, s := range all.Subclusters {
		if string(s.ID) == id {
			m.SubclusterDoc, found = s, true
		}
	}
	if !found {
		return nil, pages.Missing("There is no member "+id, "It never registered, or was removed.")
	}
	var err error
	if m.Nodes, err = readNodes(c, "/members/"+url.PathEscape(id), id); err != nil {
		return nil, err
	}
	m.Nodes.Drains = drainsHosts(m.Version)
	var drained rest.HostsDoc
	if err := c.Get(pages.WithQuery("/api/v1/drains", "subcluster", id), &drained); err == nil {
		m.Drained = drained.Hosts // others than administrators see none where ACLs are checked
	}
	var nodes rest.NodesDoc
	err = c.Get(pages.WithQuery("/api/v1/nodes", "subcluster", id, "limit", strconv.Itoa(heatNodes)), &nodes)
	if err == nil {
		m.Heat = newHeat(&nodes)
	}
	return &m, nil
}
