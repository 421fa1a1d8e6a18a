// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"net/url"
	"slices"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

var nodePage = pages.Page{
	Path: "/nodes/{id}", Name: "node", Title: "Node", Section: "nodes", Load: loadNode,
	Command: func(c *pages.Call) string {
		line := "creel node containers " + pages.ShellWord(c.Param("id"))
		if member := c.Query("member"); member != "" {
			line += " --subcluster " + pages.ShellWord(member)
		}
		return line
	},
}

// Kinds of a node's containers, as values of ?kind=; without one all are listed.
const (
	kindGuaranteed    = "guaranteed"
	kindOpportunistic = "opportunistic" // those that run
	kindQueued        = "queued"
)

// oneNode is the page of one node.
type oneNode struct {
	rest.NodeContainersDoc
	Kind  string
	Kinds []string
}

func (n *oneNode) PageTitle() string { return n.Node.ID }

// Runs reports whether the node's use is known: nodes that left have none.
func (n *oneNode) Runs() bool { return n.Node.UsedMB+n.Node.FreeMB > 0 }

func loadNode(c *pages.Call) (any, error) {
	n := &oneNode{Kind: c.Query("kind"), Kinds: []string{kindGuaranteed, kindOpportunistic, kindQueued}}
	if n.Kind != "" && !slices.Contains(n.Kinds, n.Kind) {
		return nil, pages.Bad("Invalid kind of containers", "It is guaranteed, opportunistic or queued.")
	}
	at := "/api/v1/nodes/" + url.PathEscape(c.Param("id")) + "/containers"
	if err := c.Get(pages.WithQuery(at, "subcluster", c.Query("member")), &n.NodeContainersDoc); err != nil {
		return nil, err
	}
	n.Containers = slices.DeleteFunc(n.Containers, func(k subcluster.NodeContainer) bool {
		return n.Kind != "" && kindOf(&k) != n.Kind
	})
	return n, nil
}

func kindOf(k *subcluster.NodeContainer) string {
	switch {
	case k.State == subcluster.ContainerQueued:
		return kindQueued
	case k.Opportunistic:
		return kindOpportunistic
	}
	return kindGuaranteed
}

// nodeLink returns the address of a node's page, with one kind of its containers or "" for all.
func nodeLink(id, member, kind string) string {
	return pages.WithQuery("/nodes/"+url.PathEscape(id), "member", member, "kind", kind)
}
