// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/network"
	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
)

// maxLog is the limit of bytes read from one file of a container's log.
const maxLog = 64 << 20

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
-applicationId ID reads them there. Simulated nodes execute nothing and have no logs.

The logs come from the nodes themselves, not through a router: this machine must reach
the nodes' web addresses. With --follow the command prints additions once a second,
also of containers that start later, until the application has ended.`,
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

// logAt is a container and the web address of its node.
type logAt struct{ ID, Web string }

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
		found = append(found, logAt{last.Container, webOf(last.Logs)})
	}
	if last.ID != "" {
		var doc struct {
			Container list[containerDoc] `json:"container"`
		}
		path := appPath(id) + "/appattempts/" + last.ID + "/containers"
		_, err := f.call(ctx, http.MethodGet, path, nil, nil, &doc)
		if err != nil && exitCode(err) != exitNotFound {
			return nil, err
		}
		for _, d := range doc.Container {
			found = append(found, logAt{d.ID, webOf(d.Log)})
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

// eachLog reads the log files of one container, as served by its NodeManager.
func (f *clientFlags) eachLog(ctx context.Context, at logAt, only string, do func(name string, b []byte)) error {
	if at.Web == "" {
		return errors.New("unknown address of its node")
	}
	b, err := f.node(ctx, at.Web, "/ws/v1/node/containers/"+at.ID+"/logs")
	if err != nil {
		return err
	}
	files, err := logFiles(b)
	if err != nil {
		return err
	}
	printed := false
	for _, name := range files {
		if only != "" && name != only {
			continue
		}
		b, err := f.node(ctx, at.Web, "/ws/v1/node/containerlogs/"+at.ID+"/"+url.PathEscape(name))
		if err != nil {
			return err
		}
		printed = true
		do(name, b)
	}
	if !printed && only != "" {
		return fmt.Errorf("it has no log %q; it has %s", only, strings.Join(files, ", "))
	}
	return nil
}

// logFiles returns the file names in a NodeManager's response. A list of one element has no brackets there.
func logFiles(b []byte) (names []string, err error) {
	type file struct {
		Name string `json:"fileName"`
	}
	type info struct {
		Files list[file] `json:"containerLogInfo"`
	}
	var wrapped struct {
		Info list[info] `json:"containerLogsInfo"`
	}
	var bare list[info]
	if json.Unmarshal(b, &wrapped) != nil || len(wrapped.Info) == 0 {
		if err := json.Unmarshal(b, &bare); err != nil {
			return nil, fmt.Errorf("the node returned no list of logs: %w", err)
		}
		wrapped.Info = bare
	}
	for _, i := range wrapped.Info {
		for _, n := range i.Files {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// node sends a request to a NodeManager's web server.
func (f *clientFlags) node(ctx context.Context, web, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, min(f.timeout, 30*time.Second))
	defer cancel()
	q := url.Values{"user.name": {f.user}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+web+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/plain")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("its node at %s does not respond: %w; simulated nodes have no logs", web, network.InWords(err))
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxLog))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its node at %s no longer has the logs: %w", web, answerError(resp.StatusCode, b))
	}
	return b, nil
}
