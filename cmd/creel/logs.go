// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/nodelogs"
	"github.com/creelrm/creel/internal/webdoc"
)

func appLogs() *cobra.Command {
	var f clientFlags
	var container, file string
	var follow bool
	c := &cobra.Command{
		Use:   "logs ID",
		Short: "print the logs of an application's containers, from the nodes that ran them",
		Long: `Prints the logs of the containers of the last attempt that the ResourceManagers
still know: the AM's and those of running containers, or of one with --container. A
node keeps the logs of a completed container for its
yarn.nodemanager.log.retain-seconds. With log aggregation, the logs of a completed
application are in the file system of yarn.nodemanager.remote-app-log-dir: yarn logs
-applicationId ID reads them there. Simulated nodes execute nothing; their logs say so.

The logs come through the router, at most 64 MiB of each. A ResourceManager does not
read them: then this machine must reach the nodes' web addresses. With --follow the
command prints additions once a second, also of containers that start later, until the
application has ended.`,
		Example: `  creel app logs application_1700000000000_0001 --file stderr
  creel app logs application_1700000000000_0001 --follow`,
		Args: exactly(1, "one application id"), ValidArgsFunction: f.appIDs,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := appArgument(args[0])
		if err != nil {
			return err
		}
		if follow {
			l := follower{f: &f, out: c.OutOrStdout(), file: file, sent: map[string]int{}, failed: map[string]string{}}
			return l.follow(c, id, container)
		}
		list, err := f.logged(c.Context(), id, container)
		if err != nil {
			return err
		}
		failed := 0
		for _, at := range list {
			if err := f.containerLogs(c.Context(), c.OutOrStdout(), at, file); err != nil {
				failed++
				fmt.Fprintf(c.ErrOrStderr(), "creel: the logs of %s: %v\n", at.ID, err)
			}
		}
		switch {
		case failed == len(list):
			return &exitError{exitNotFound, errSilent}
		case failed > 0:
			return &exitError{exitPartial, errSilent}
		}
		return nil
	}
	f.register(c)
	c.Flags().StringVar(&container, "container", "", "only the container `ID`")
	c.Flags().StringVar(&file, "file", "", "only the log `NAME`, such as stderr")
	c.Flags().BoolVar(&follow, "follow", false, "print additions until the application has ended")
	return c
}

// logAt is a container and its node: the node's id if it is known, and its web address.
type logAt struct{ ID, Web, Node string }

// logged returns the known containers, with their nodes' web addresses.
func (f *clientFlags) logged(ctx context.Context, id creel.ApplicationID, only string) ([]logAt, error) {
	attempts, err := f.attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	var last attemptDoc
	for _, a := range attempts {
		if a.Number >= last.Number {
			last = a
		}
	}
	var found []logAt
	if last.Container != "" {
		found = append(found, logAt{last.Container, webOf(last.Logs), last.Node})
	}
	if last.ID != "" {
		var doc struct {
			Container webdoc.Many[containerDoc] `json:"container"`
		}
		path := appPath(id) + "/appattempts/" + last.ID + "/containers"
		_, err := f.call(ctx, http.MethodGet, path, nil, nil, &doc)
		if err != nil && exitCode(err) != exitNotFound {
			return nil, err
		}
		for _, d := range doc.Container {
			found = append(found, logAt{d.ID, webOf(d.Log), d.Node})
		}
	}
	if only != "" {
		found = slices.DeleteFunc(found, func(at logAt) bool { return at.ID != only })
	}
	slices.SortFunc(found, func(a, b logAt) int { return strings.Compare(a.ID, b.ID) })
	found = slices.CompactFunc(found, func(a, b logAt) bool { return a.ID == b.ID })
	if len(found) == 0 {
		what := "no container of " + id.String()
		if only != "" {
			what = "no container " + only + " of the last attempt of " + id.String()
		}
		return nil, &exitError{exitNotFound, fmt.Errorf(
			"%s is known any more: the node that ran it is not on record; if logs are aggregated, yarn logs reads them", what)}
	}
	return found, nil
}

// webOf returns the node's address from a link to its logs.
func webOf(link string) string {
	if strings.HasPrefix(link, "//") {
		link = "http:" + link
	}
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Host
}

// containerLogs prints the log files of one container.
func (f *clientFlags) containerLogs(ctx context.Context, out io.Writer, at logAt, only string) error {
	return f.eachLog(ctx, at, only, func(name string, b []byte) {
		fmt.Fprintf(out, "==> %s %s on %s <==\n%s", at.ID, name, at.Web, b)
		if len(b) > 0 && b[len(b)-1] != '\n' {
			fmt.Fprintln(out)
		}
	})
}

// eachLog reads the log files of one container.
func (f *clientFlags) eachLog(ctx context.Context, at logAt, only string, do func(name string, b []byte)) error {
	source := f.throughServer(at)
	files, err := source.files(ctx)
	if err == errNoLogsHere {
		source = f.fromNode(at)
		files, err = source.files(ctx)
	}
	if err != nil {
		return err
	}
	var names []string
	printed := false
	for _, file := range files {
		names = append(names, file.Name)
		if only != "" && file.Name != only {
			continue
		}
		b, err := source.read(ctx, file.Name)
		if err != nil {
			return err
		}
		printed = true
		do(file.Name, b)
	}
	if !printed && only != "" {
		return fmt.Errorf("it has no log %q; it has %s", only, strings.Join(names, ", "))
	}
	return nil
}

// logSource has the logs of one container.
type logSource struct {
	files func(context.Context) ([]nodelogs.File, error)
	read  func(ctx context.Context, name string) ([]byte, error)
}

// errNoLogsHere is the error of servers that do not read logs of nodes: ResourceManagers.
var errNoLogsHere = errors.New("the server does not read logs of nodes")

// throughServer reads logs through a router.
func (f *clientFlags) throughServer(at logAt) logSource {
	path := "/api/v1/nodes/" + url.PathEscape(at.Node) + "/containers/" + url.PathEscape(at.ID) + "/logs"
	return logSource{
		files: func(ctx context.Context) ([]nodelogs.File, error) {
			if at.Node == "" {
				return nil, errNoLogsHere
			}
			var doc struct {
				Files []nodelogs.File `json:"files"`
			}
			_, err := f.call(ctx, http.MethodGet, path, nil, nil, &doc)
			var problem *problemError
			if exitCode(err) == exitNotFound && (!errors.As(err, &problem) || problem.Code == "no_such_path") {
				return nil, errNoLogsHere
			}
			return doc.Files, err
		},
		read: func(ctx context.Context, name string) (b []byte, err error) {
			_, err = f.call(ctx, http.MethodGet, path+"/"+url.PathEscape(name), nil, nil, &b)
			return b, err
		},
	}
}

// fromNode reads logs from the node itself.
func (f *clientFlags) fromNode(at logAt) logSource {
	reader, place := nodelogs.New(nil), nodelogs.At{Web: at.Web, Container: at.ID, User: f.user}
	place.HTTPS = strings.HasPrefix(f.server, "https://") // the cluster's policy
	return logSource{
		files: func(ctx context.Context) ([]nodelogs.File, error) {
			ctx, cancel := context.WithTimeout(ctx, f.timeout)
			defer cancel()
			return reader.Files(ctx, place)
		},
		read: func(ctx context.Context, name string) ([]byte, error) {
			ctx, cancel := context.WithTimeout(ctx, f.timeout)
			defer cancel()
			return reader.Read(ctx, place, name, 0)
		},
	}
}
