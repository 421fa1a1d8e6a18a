// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/network"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// adminFlags name the server of ResourceManagerAdministrationProtocol. It is a router, which forwards a call to one or
// all members, or a ResourceManager.
type adminFlags struct {
	conf       confFlags
	address    string
	user, as   string
	subcluster string
	timeout    time.Duration
}

func (f *adminFlags) register(c *cobra.Command) {
	f.conf.register(c)
	fl := c.Flags()
	fl.StringVar(&f.address, "admin", "",
		"admin `ADDRESS` of a router or ResourceManager (default yarn.resourcemanager.admin.address of --conf)")
	fl.StringVar(&f.user, "user", "", "user to act as: `NAME` (default: $HADOOP_USER_NAME, then the context's user, then the current user)")
	fl.StringVar(&f.as, "as", "", asUsage)
	fl.StringVar(&f.subcluster, "subcluster", "", "only the member `ID`; else all of them")
	fl.DurationVar(&f.timeout, "request-timeout", time.Minute, "give up after this long")
}

type adminClient = yarnrpc.ResourceManagerAdministrationProtocolClient

// do makes one call.
func (f *adminFlags) do(ctx context.Context, call func(context.Context, adminClient) error) error {
	who := clientFlags{server: "none", user: f.user}
	if err := who.resolve(); err != nil {
		return err
	}
	at := f.address
	if at == "" {
		s, err := f.conf.load()
		if err != nil {
			return err
		}
		at = s.Address("yarn.resourcemanager.admin.address")
	}
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	login := hrpc.Login{User: who.user}
	if f.as != "" {
		login = hrpc.Login{User: f.as, RealUser: who.user}
	}
	err := call(ctx, yarnrpc.NewResourceManagerAdministrationProtocolClient(client, at, login))
	var lost *hrpc.TransportError
	var refused *hrpc.RemoteError
	switch {
	case errors.As(err, &lost):
		return &exitError{exitUnreachable, fmt.Errorf(
			"%s cannot be reached: %w; name another with --admin, or a directory with --conf", at, network.InWords(lost.Err))}
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{exitUnreachable, fmt.Errorf(
			"%s: %w; name another with --admin, or a directory with --conf", at, network.InWords(err))}
	case errors.As(err, &refused):
		return refusal(refused, exitCode(err))
	}
	return err
}

// refusal removes Java class names and stack traces from a ResourceManager's error. Hadoop reports a refused call with
// a general class. Only the class inside its message identifies a missing permission.
func refusal(e *hrpc.RemoteError, code int) error {
	text, _, _ := strings.Cut(e.Message, "\n")
	if strings.Contains(text, "AccessControlException: ") || strings.Contains(text, "AuthorizationException: ") {
		code = exitNotPermitted
	} else if missingObject.MatchString(text) {
		code = exitNotFound
	}
	return &exitError{code, errors.New(javaName.ReplaceAllString(text, ""))}
}

// member returns the subcluster in a request; nil for all.
func (f *adminFlags) member() *string {
	if f.subcluster == "" {
		return nil
	}
	return proto.String(f.subcluster)
}

func (f *adminFlags) everywhere() string { return cmp.Or(f.subcluster, "all members") }

func adminCommand() *cobra.Command {
	type client = adminClient
	refresh := func(use, short string, call func(context.Context, client, *string) error) *cobra.Command {
		var f adminFlags
		c := &cobra.Command{Use: use, Short: short, Args: noArguments}
		c.RunE = func(c *cobra.Command, _ []string) error {
			err := f.do(c.Context(), func(ctx context.Context, at client) error { return call(ctx, at, f.member()) })
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s: done at %s\n", use, f.everywhere())
			}
			return err
		}
		f.register(c)
		return c
	}
	return daily("admin", "have ResourceManagers read their files again, and change their queues",
		refresh("refresh-queues", "read the queue files again", func(ctx context.Context, at client, m *string) error {
			_, err := at.RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{SubClusterId: m})
			return err
		}),
		refresh("refresh-nodes", "read the lists of hosts again",
			func(ctx context.Context, at client, m *string) error {
				_, err := at.RefreshNodes(ctx, &pb.RefreshNodesRequestProto{SubClusterId: m})
				return err
			}),
		refresh("refresh-acls", "reload the administrators and the impersonation rules",
			func(ctx context.Context, at client, m *string) error {
				_, one := at.RefreshAdminAcls(ctx, &pb.RefreshAdminAclsRequestProto{SubClusterId: m})
				_, two := at.RefreshSuperUserGroupsConfiguration(
					ctx, &pb.RefreshSuperUserGroupsConfigurationRequestProto{SubClusterId: m})
				return errors.Join(one, two)
			}),
		schedulerConf(),
	)
}

// editHosts adds hosts to a file with one host a line, or removes them. It returns the number of changed hosts.
func editHosts(file string, hosts []string, add bool) (changed int, err error) {
	if strings.HasSuffix(strings.ToLower(file), ".xml") {
		return 0, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: file + " is not edited", Why: "its name ends in .xml: hosts there have their own timeouts",
			Try: "edit it, then run creel admin refresh-nodes",
		}
	}
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	for _, h := range hosts {
		at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == h })
		if (at >= 0) == add {
			continue
		}
		changed++
		if add {
			lines = append(lines, h)
		} else {
			lines = slices.Delete(lines, at, at+1)
		}
	}
	text := strings.TrimLeft(strings.Join(lines, "\n")+"\n", "\n")
	return changed, replaceFile(file, []byte(text), 0o644)
}

// queueState is a command that stops or starts a queue: by calls to members, or in capacity-scheduler.xml.
func queueState(use, state string) *cobra.Command {
	var f adminFlags
	var server string
	c := &cobra.Command{
		Use: use + " QUEUE", Short: map[string]string{
			"stop":  "have a queue take no new applications; those it has go on",
			"start": "have a stopped queue take applications again",
		}[use],
		Long: `Changes the state of the queue in all members, or in --subcluster, through the router.
Members must allow calls to change their queues: yarn.scheduler.configuration.store.class.
With --conf DIR, which must be the ResourceManager's own, it changes the state in
capacity-scheduler.xml there instead, and has the ResourceManager read the file.`,
		Example: "  creel queue " + use + " root.research\n" +
			"  creel queue " + use + " root.research --subcluster sc-1",
		Args: exactly(1, "one queue"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := creel.ParseQueuePath(args[0])
		if err != nil {
			return usage(err)
		}
		if !q.IsFull() {
			q = creel.RootQueue.Child(args[0])
		}
		if f.conf.dir == "" {
			router := clientFlags{
				server: server, user: f.user, as: f.as, timeout: f.timeout, printer: printer{"table"},
			}
			if err := router.queueThere(c.Context(), string(q)); err != nil {
				return err
			}
			return router.changeQueues(c, f.subcluster, fmt.Sprintf("queue %s is %s", q, state),
				schedulerChange{Update: []queueChange{{
					Queue: string(q), Params: confParams{[]confEntry{{Key: "state", Value: state}}},
				}}})
		}
		file := filepath.Join(f.conf.dir, "capacity-scheduler.xml")
		if err := setProperty(file, "yarn.scheduler.capacity."+string(q)+".state", state); err != nil {
			return err
		}
		err = f.do(c.Context(), func(ctx context.Context, at adminClient) error {
			_, err := at.RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{SubClusterId: f.member()})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s was changed but rejected: %w; fix it and repeat with creel admin refresh-queues", file, err)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "queue %s is %s at %s\n", q, state, f.everywhere())
		return err
	}
	f.register(c)
	c.Flags().StringVar(&server, "server", "", "web `URL` of a router (default $CREEL_SERVER, the context's, or "+defaultServer+")")
	return c
}

// setProperty sets one property of a Hadoop configuration file and leaves the rest of the file unchanged.
func setProperty(file, key, value string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return usage(err)
	}
	var text bytes.Buffer
	if err := xml.EscapeText(&text, []byte(value)); err != nil {
		return err
	}
	if at := bytes.Index(b, []byte("<name>"+key+"</name>")); at >= 0 {
		open := bytes.Index(b[at:], []byte("<value>"))
		end := bytes.Index(b[at:], []byte("</value>"))
		if open < 0 || end < open || bytes.Contains(b[at:at+end], []byte("</property>")) {
			return usage(fmt.Errorf("%s: property %s has no value; edit it by hand", file, key))
		}
		b = slices.Concat(b[:at+open+len("<value>")], text.Bytes(), b[at+end:])
	} else {
		end := bytes.LastIndex(b, []byte("</configuration>"))
		if end < 0 {
			return usage(fmt.Errorf("%s is not a Hadoop configuration file", file))
		}
		property := fmt.Sprintf("  <property><name>%s</name><value>%s</value></property>\n", key, &text)
		b = slices.Concat(b[:end], []byte(property), b[end:])
	}
	return replaceFile(file, b, 0o644)
}

// queueTree prints the queues as a tree.
func queueTree() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{Use: "tree", Short: "show the queues as a tree over all subclusters", Args: noArguments}
	c.RunE = func(c *cobra.Command, _ []string) error {
		list, head, err := f.queueList(c.Context())
		if err != nil {
			return err
		}
		columns := slices.Clone(queueColumns)
		columns[0].text = func(q queueDoc) string {
			at := strings.LastIndexByte(q.Path, '.')
			return strings.Repeat("  ", strings.Count(q.Path, ".")) + q.Path[at+1:]
		}
		if f.printer.format == "name" {
			columns = queueColumns
		}
		if err := printList(c.OutOrStdout(), f.printer, list, columns); err != nil {
			return err
		}
		return partialExit(c, head)
	}
	f.register(c)
	return c
}

// aclDoc lists a user's permitted operations on a queue.
type aclDoc struct {
	Queue     string `json:"queue"`
	User      string `json:"user"`
	Operation string `json:"operation"`
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason,omitempty"`
}

func queueACL() *cobra.Command {
	var f clientFlags
	var of string
	c := &cobra.Command{
		Use: "acl QUEUE", Short: "show a user's permissions on a queue", Args: exactly(1, "one queue"),
		ValidArgsFunction: f.queues,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.resolve(); err != nil {
			return err
		}
		who := cmp.Or(of, f.user)
		var list []aclDoc
		for _, operation := range []string{"SUBMIT_APPLICATIONS", "ADMINISTER_QUEUE"} {
			var doc struct {
				Allowed     flexibleBool `json:"allowed"`
				Diagnostics string       `json:"diagnostics"`
			}
			q := url.Values{"user": {who}, "queue-acl-type": {operation}}
			path := "/ws/v1/cluster/queues/" + url.PathEscape(args[0]) + "/access"
			if _, err := f.call(c.Context(), "GET", path, q, nil, &doc); err != nil {
				if exitCode(err) == exitNotPermitted { // also the answer for an absent queue
					return cmp.Or(f.queueThere(c.Context(), args[0]), err)
				}
				return err
			}
			list = append(list, aclDoc{args[0], who, operation, bool(doc.Allowed), doc.Diagnostics})
		}
		return printList(c.OutOrStdout(), f.printer, list, []column[aclDoc]{
			{"OPERATION", false, func(d aclDoc) string { return d.Operation }},
			{"USER", false, func(d aclDoc) string { return d.User }},
			{"QUEUE", false, func(d aclDoc) string { return d.Queue }},
			{"ALLOWED", false, func(d aclDoc) string { return map[bool]string{true: "yes", false: "no"}[d.Allowed] }},
			{"REASON", false, func(d aclDoc) string { return d.Reason }},
		})
	}
	f.register(c)
	c.Flags().StringVar(&of, "of", "", "of this `USER` (default: you)")
	return c
}

// flexibleBool reads true, or "true" as in YARN's JSON.
type flexibleBool bool

func (f *flexibleBool) UnmarshalJSON(b []byte) error {
	*f = strings.Trim(string(b), `"`) == "true"
	return nil
}
