// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/load"
	"github.com/creelrm/creel/app/sim"
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/app/sim/overcommit"
	"github.com/creelrm/creel/app/sim/ways"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completion is a function of cobra that completes a word.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completionOf returns a completion that queries the server named by the command line's own flags.
func completionOf(find func(f *clientFlags) completion) completion {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		value := func(name string) string {
			text, _ := c.Flags().GetString(name) // "" for a command without the flag
			return text
		}
		f := &clientFlags{
			server: value("server"), user: value("user"), as: value("as"), context: value("context"),
			timeout: completionTime, printer: printer{format: "json"},
		}
		return find(f)(c, args, typed)
	}
}

// liveWords completes the words that a query returns, each as "WORD\tdescription".
func liveWords(find func(ctx context.Context, f *clientFlags) ([]string, error)) completion {
	return completionOf(func(f *clientFlags) completion {
		return f.completes(func(ctx context.Context) ([]string, error) { return find(ctx, f) })
	})
}

// localWords completes words that this program knows without a server.
func localWords(find func() ([]string, error)) completion {
	return liveWords(func(context.Context, *clientFlags) ([]string, error) { return find() })
}

func fixedWords(words ...string) completion {
	return localWords(func() ([]string, error) { return words, nil })
}

func contextNames() ([]string, error) {
	f, _, err := readContexts()
	return slices.Sorted(maps.Keys(f.Contexts)), err
}

func settingKeys() (keys []string, err error) {
	for _, s := range settings.All() {
		keys = append(keys, s.Key)
	}
	return keys, nil
}

// applicationGroups completes the values of a field of the applications, such as their users.
func applicationGroups(field string) completion {
	return liveWords(func(ctx context.Context, f *clientFlags) (out []string, err error) {
		var doc rest.AppsDoc
		q := url.Values{"group": {field}, "limit": {"1"}}
		_, err = f.call(ctx, http.MethodGet, "/api/v1/apps", q, nil, &doc)
		for _, g := range doc.Groups {
			out = append(out, g.Key)
		}
		return out, err
	})
}

// versionWord describes a version of a document.
func versionWord(version int64, author, comment string) string {
	return fmt.Sprintf("%d\t%s, %s", version, author, comment)
}

// treeVersions completes versions of the queue tree.
var treeVersions = liveWords(func(ctx context.Context, f *clientFlags) (out []string, err error) {
	list, err := f.queueTrees(ctx, 0, 50)
	for _, d := range list {
		out = append(out, versionWord(d.Version, d.Author, d.Comment))
	}
	return out, err
})

// mends completes versions of the repairs of the members' queues.
var mends = liveWords(func(ctx context.Context, f *clientFlags) (out []string, err error) {
	var doc rest.MendsDoc
	_, err = f.call(ctx, http.MethodGet, mendsPath, nil, nil, &doc)
	for _, m := range doc.Mends {
		out = append(out, versionWord(m.Version, m.Author, m.Comment))
	}
	return out, err
})

// eventSubjects completes the subjects of the newest events.
var eventSubjects = liveWords(func(ctx context.Context, f *clientFlags) (out []string, err error) {
	doc, err := f.events(ctx, url.Values{"limit": {"1000"}})
	for _, e := range doc.Events {
		out = append(out, e.Subject)
	}
	return out, err
})

// ofFirst completes words about the first argument.
func ofFirst(find func(ctx context.Context, f *clientFlags, first string) ([]string, error)) completion {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return liveWords(func(ctx context.Context, f *clientFlags) ([]string, error) {
			return find(ctx, f, args[0])
		})(c, nil, typed)
	}
}

// policyVersions completes versions of a queue's policy.
var policyVersions = ofFirst(func(ctx context.Context, f *clientFlags, queue string) (out []string, err error) {
	list, err := routerPolicies{f}.PolicyHistory(ctx, creel.QueuePath(queue), 0, 50)
	for _, p := range list {
		out = append(out, versionWord(p.Version, p.Author, p.Comment))
	}
	return out, err
})

// loggedContainers completes containers of an application.
var loggedContainers = ofFirst(func(ctx context.Context, f *clientFlags, app string) (out []string, err error) {
	id, err := appArgument(app)
	if err != nil {
		return nil, err
	}
	list, err := f.logged(ctx, id, "")
	for _, k := range list {
		out = append(out, k.ID)
	}
	return out, err
})

// inList completes the last word of a list with commas.
func inList(find completion) completion {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		head := typed[:strings.LastIndex(typed, ",")+1]
		words, how := find(c, args, typed[len(head):])
		for i := range words {
			words[i] = head + words[i]
		}
		return words, how
	}
}

func applicationStates() []string {
	return append([]string{"running", "waiting", "ended"}, stateNames(creel.ParseApplicationState)...)
}

// stateNames returns the names of states from their enumeration, which begins with 1.
func stateNames[T interface {
	~int32
	String() string
}](parse func(string) (T, error)) (names []string) {
	for s := T(1); ; s++ {
		if _, err := parse(s.String()); err != nil {
			return names
		}
		names = append(names, s.String())
	}
}

// The completions of first arguments by command, and of flags by name. "COMMAND --FLAG" is for one command only.
var (
	liveQueues  = completionOf(func(f *clientFlags) completion { return f.queues })
	liveMembers = completionOf(func(f *clientFlags) completion { return f.memberIDs })
	liveNodes   = completionOf(func(f *clientFlags) completion { return f.nodes })
	liveApps    = completionOf(func(f *clientFlags) completion { return f.appIDs })

	argumentCompletions = map[string]completion{
		"queue start": liveQueues, "queue stop": liveQueues, "policy set": liveQueues,
		"node show": liveNodes, "node drain": liveNodes, "node decommission": liveNodes, "node recommission": liveNodes,
		"rebalancer rollback": liveApps, "queue diff": treeVersions,
		"context use": localWords(contextNames), "context remove": localWords(contextNames),
		"context set": localWords(contextNames), "config explain": localWords(settingKeys),
	}
	flagCompletions = map[string]completion{
		"queue":                liveQueues,
		"subcluster":           liveMembers,
		"context":              localWords(contextNames),
		"output":               fixedWords("table", "wide", "json", "yaml", "name"),
		"mode":                 fixedWords("stop", "finish", "move"),
		"role":                 fixedWords("rm", "nm", "router", "proxy", "rebalancer", "agent"),
		"state":                inList(fixedWords(applicationStates()...)),
		"node list --sort":     fixedWords(rest.NodeOrders()...),
		"node list --state":    inList(fixedWords(stateNames(creel.ParseNodeState)...)),
		"of":                   applicationGroups("user"),
		"type":                 applicationGroups("type"),
		"tag":                  inList(applicationGroups("tag")),
		"sort":                 fixedWords(slices.Sorted(maps.Keys(appOrders))...),
		"for":                  inList(fixedWords(slices.Sorted(maps.Keys(waitWords))...)),
		"kind":                 fixedWords("router", "proxy", "rebalancer"),
		"events --kind":        fixedWords(strings.Fields(kindNames())...),
		"events --subject":     eventSubjects,
		"call":                 fixedWords(load.Reads...),
		"fault":                inList(fixedWords(sim.FaultNames()...)),
		"method":               fixedWords("GET", "POST", "PUT", "DELETE"),
		"queue rollback --to":  treeVersions,
		"queue apply --expect": treeVersions,
		"queue mend --undo":    mends,
		"split":                fixedWords("home-first", "by-headroom"),
		"overcommit":           inList(fixedWords(overcommit.Modes()...)),
		"queue-rules":          inList(fixedWords(opportune.RuleNames()...)),
		"ways":                 inList(fixedWords(ways.Names()...)),
	}
	// They need the arguments before the flag.
	flagsOfArguments = map[string]completion{
		"version": policyVersions, "with": policyVersions, "container": loggedContainers,
		"policy rollback --to": policyVersions, "policy set --expect": policyVersions,
	}
)

// addCompletions completes the arguments and flags of the tables above, if a command has no completion of its own.
func addCompletions(c *cobra.Command) {
	for _, child := range c.Commands() {
		if find := argumentCompletions[strings.TrimPrefix(child.CommandPath(), "creel ")]; find != nil &&
			child.ValidArgsFunction == nil {
			child.ValidArgsFunction = find
		}
		child.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if _, own := child.GetFlagCompletionFunc(flag.Name); own {
				return
			}
			path := strings.TrimPrefix(child.CommandPath(), "creel ") + " --" + flag.Name
			for _, name := range [...]string{path, flag.Name} {
				find := flagsOfArguments[name]
				if of := flagCompletions[name]; of != nil {
					find = func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
						return of(c, nil, typed)
					}
				}
				if find != nil {
					// It fails only for flags that do not exist, or that have a completion.
					_ = child.RegisterFlagCompletionFunc(flag.Name, find)
					return
				}
			}
		})
		addCompletions(child)
	}
}
