// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/spf13/cobra"
)

var nodeContainerColumns = []column[subcluster.NodeContainer]{
	{"CONTAINER", false, func(k subcluster.NodeContainer) string { return k.ID }},
	{"STATE", false, func(k subcluster.NodeContainer) string { return k.State }},
	{"APPLICATION", false, func(k subcluster.NodeContainer) string { return k.Application }},
	{"USER", false, func(k subcluster.NodeContainer) string { return k.User }},
	{"MEMORY", false, func(k subcluster.NodeContainer) string { return units.Memory(k.MemoryMB) }},
	{"VCORES", false, func(k subcluster.NodeContainer) string { return strconv.FormatInt(k.VCores, 10) }},
	{"STARTED", false, func(k subcluster.NodeContainer) string { return k.Started.Local().Format(time.RFC3339) }},
	{"QUEUE", true, func(k subcluster.NodeContainer) string { return k.Queue }},
	{"OPPORTUNISTIC", true, func(k subcluster.NodeContainer) string { return strconv.FormatBool(k.Opportunistic) }},
	{"NAME", true, func(k subcluster.NodeContainer) string { return k.Name }},
	{"LOG", true, func(k subcluster.NodeContainer) string { return k.Logs }},
}

// nodeContainers lists the containers of a node.
func nodeContainers() *cobra.Command {
	var f clientFlags
	var member string
	c := &cobra.Command{
		Use: "containers ID", Short: "list the containers of a node, with their applications",
		Args: exactly(1, "one node id, HOST:PORT"), ValidArgsFunction: f.nodes,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q := url.Values{}
		if member != "" {
			q.Set("subcluster", member)
		}
		var doc rest.NodeContainersDoc
		path := "/api/v1/nodes/" + url.PathEscape(args[0]) + "/containers"
		if _, err := f.call(c.Context(), http.MethodGet, path, q, nil, &doc); err != nil {
			return err
		}
		if doc.Problem != "" {
			err := fmt.Errorf("the containers of %s are not known: %s", args[0], doc.Problem)
			return &exitError{exitUnreachable, err}
		}
		if doc.Hidden > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "creel: %s more of applications that you may not see\n",
				counted(int(doc.Hidden), "container"))
		}
		return printList(c.OutOrStdout(), f.printer, doc.Containers, nodeContainerColumns)
	}
	f.register(c)
	c.Flags().StringVar(&member, "subcluster", "", "`ID` of its member, if several have a node of this name")
	return c
}
