// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel/internal/settings"
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

// localWords completes words that this program knows without a server.
func localWords(find func() ([]string, error)) completion {
	return completionOf(func(f *clientFlags) completion {
		return f.completes(func(context.Context) ([]string, error) { return find() })
	})
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

// The completions of first arguments by command, and of flags by name.
var (
	liveQueues  = completionOf(func(f *clientFlags) completion { return f.queues })
	liveMembers = completionOf(func(f *clientFlags) completion { return f.memberIDs })
	liveNodes   = completionOf(func(f *clientFlags) completion { return f.nodes })
	liveApps    = completionOf(func(f *clientFlags) completion { return f.appIDs })

	argumentCompletions = map[string]completion{
		"queue start": liveQueues, "queue stop": liveQueues, "policy set": liveQueues,
		"node show": liveNodes, "node drain": liveNodes, "node decommission": liveNodes, "node recommission": liveNodes,
		"rebalancer rollback": liveApps,
		"context use":         localWords(contextNames), "context remove": localWords(contextNames),
		"context set": localWords(contextNames), "config explain": localWords(settingKeys),
	}
	flagCompletions = map[string]completion{
		"queue": liveQueues, "subcluster": liveMembers, "context": localWords(contextNames),
		"output": fixedWords("table", "wide", "json", "yaml", "name"),
		"mode":   fixedWords("stop", "finish", "move"),
		"role":   fixedWords("rm", "nm", "router", "proxy", "rebalancer", "agent"),
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
			find := flagCompletions[flag.Name]
			if _, own := child.GetFlagCompletionFunc(flag.Name); own || find == nil {
				return
			}
			// It fails only for flags that do not exist, or that have a completion.
			_ = child.RegisterFlagCompletionFunc(flag.Name, func(c *cobra.Command, _ []string, typed string) (
				[]string, cobra.ShellCompDirective,
			) {
				return find(c, nil, typed)
			})
		})
		addCompletions(child)
	}
}
