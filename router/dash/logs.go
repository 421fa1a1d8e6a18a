// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
)

// lastOfLog is the number of bytes that the page shows of a log: its end.
const lastOfLog = 64 << 10

var logsPage = pages.Page{
	Path: "/nodes/{id}/logs/{container}", Name: "logs", Title: "Logs", Section: "nodes", Load: loadLogs,
	Command: func(c *pages.Call) string {
		id, err := creel.ParseContainerID(c.Param("container"))
		if err != nil {
			return "creel node containers " + pages.ShellWord(c.Param("id"))
		}
		line := "creel app logs " + id.Attempt.Application.String() + " --container " + id.String()
		if file := c.Query("file"); file != "" {
			line += " --file " + pages.ShellWord(file)
		}
		return line
	},
}

// logs is the page of a container's logs on its node.
type logs struct {
	rest.NodeLogsDoc
	Container, Application string
	Name                   string // of the shown log
	Text                   string // its end
	Cut                    bool   // it is longer
	Problem                string // reason why there is none
}

func (l *logs) PageTitle() string { return "Logs of " + l.Container }

// At returns the address of one log on the page.
func (l *logs) At(file string) string {
	return pages.WithQuery(logsLink(l.Node.ID, l.Container), "member", string(l.Node.Member), "file", file)
}

// Whole returns the address of the shown log's whole text.
func (l *logs) Whole() string {
	at := logsAPI(l.Node.ID, l.Container) + "/" + url.PathEscape(l.Name)
	return pages.WithQuery(at, "subcluster", string(l.Node.Member))
}

func loadLogs(c *pages.Call) (any, error) {
	id, err := creel.ParseContainerID(c.Param("container"))
	if err != nil {
		return nil, pages.Bad("Invalid container id", err.Error())
	}
	l := &logs{Container: id.String(), Application: id.Attempt.Application.String(), Name: c.Query("file")}
	l.Node.ID = c.Param("id")
	at := logsAPI(l.Node.ID, l.Container)
	member := c.Query("member")
	if err := c.Get(pages.WithQuery(at, "subcluster", member), &l.NodeLogsDoc); err != nil {
		p, ok := err.(*pages.Problem)
		if !ok {
			return nil, err
		}
		l.Problem = p.Error()
		return l, nil
	}
	for _, f := range l.Files {
		if l.Name == "" || f.Name == l.Name {
			l.Name, l.Cut = f.Name, f.Size > lastOfLog
			break
		}
	}
	if l.Name == "" {
		return l, nil
	}
	at += "/" + url.PathEscape(l.Name)
	text, err := c.Text(pages.WithQuery(at, "subcluster", member, "last", strconv.Itoa(lastOfLog)))
	if p, ok := err.(*pages.Problem); ok {
		l.Problem = p.Error()
	} else if err != nil {
		return nil, err
	}
	l.Text = strings.ToValidUTF8(string(text), "\uFFFD")
	return l, nil
}

func logsAPI(node, container string) string {
	return "/api/v1/nodes/" + url.PathEscape(node) + "/containers/" + url.PathEscape(container) + "/logs"
}

// logsLink returns the address of the page of a container's logs.
func logsLink(node, container string) string {
	return "/nodes/" + url.PathEscape(node) + "/logs/" + url.PathEscape(container)
}
