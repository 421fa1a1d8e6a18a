// SPDX-License-Identifier: Apache-2.0

// Command creel is the whole federation in one binary: routers, AM-RM proxies, ResourceManagers, simulated nodes, the
// demo, the simulator, load generators and the everyday commands.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/app/daemon/build"
	"github.com/creelrm/creel/app/daemon/logs"
)

func main() {
	code := run(context.Background(), os.Args[1:])
	logs.Flush()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errSilent) {
		printError(root.ErrOrStderr(), ran, err)
	}
	return exitCode(err)
}

// printError writes an error in the command's output format: as a line, or with -o json as a document.
func printError(w io.Writer, ran *cobra.Command, err error) {
	var p problemError
	if at := (*problemError)(nil); errors.As(err, &at) {
		p = *at
	}
	verbose := false
	if ran != nil {
		verbose, _ = ran.Flags().GetBool("verbose") // false for a command without the flag
		if o := ran.Flags().Lookup("output"); o != nil && o.Value.String() == "json" {
			type failure struct {
				Message   string `json:"message"`
				ExitCode  int    `json:"exit_code"`
				Code      string `json:"code,omitempty"`
				RequestID string `json:"request_id,omitempty"`
			}
			// An error of standard error cannot be reported anywhere.
			json.NewEncoder(w).Encode(map[string]failure{"error": {err.Error(), exitCode(err), p.Code, p.RequestID}})
			return
		}
	}
	fmt.Fprintln(w, "creel:", err)
	if verbose && p.Code != "" {
		fmt.Fprintf(w, "creel: code %s, request %s, see %s\n", p.Code, p.RequestID, p.Page)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "creel",
		Short: "many YARN clusters made one",
		Long: `creel makes many YARN clusters one. Clients submit to a stateless router, which
picks a home subcluster; an AM-RM proxy spreads the application's asks over many
ResourceManagers. Every part speaks Hadoop's own protocols.

Start with: creel demo

Exit codes of all commands:
` + strings.TrimRight(exitText("  %d  %s\n"), "\n"),
		Version:       build.Read().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },

		PersistentPreRunE: checkNumbers,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "try", Title: "See it run:"},
		&cobra.Group{ID: "daemon", Title: "Daemons:"},
		&cobra.Group{ID: "daily", Title: "Every day:"},
	)
	root.AddCommand(
		demoCommand(),
		upCommand(),
		runCommand(),
		runAMCommand(),
		readyCommand(),
		simCommand(),
		loadCommand(),
		rmCommand(),
		nmCommand(),
		routerCommand(),
		proxyCommand(),
		agentCommand(),
		rebalancerCommand(),
		appCommand(),
		queueCommand(),
		nodeCommand(),
		subclusterCommand(),
		policyCommand(),
		statusCommand(), topCommand(),
		eventsCommand(),
		systemCommand(),
		storeCommand(),
		adminCommand(),
		configCommand(),
		doctorCommand(),
		contextCommand(),
		referenceCommand(),
		versionCommand(),
	)
	addExamples(root)
	addCompletions(root)
	return root
}
