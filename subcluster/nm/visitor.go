// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// This is authorization on a node: decisions of ContainerManagementProtocol that need only the node's keys. An AM
// shows an NMToken when it connects, and a container token for each container that it starts or resizes.

// ErrAuxService is the kind of the error for a container that requests an auxiliary service which the node lacks;
// YARN has a separate exception for it.
var ErrAuxService = fmt.Errorf("%w: no such auxiliary service", creel.ErrInvalidRequest)

// CheckNM returns the password of an NMToken, or the reason why this node rejects it.
func (n *Node) CheckNM(id token.NM, identifier []byte) ([]byte, error) {
	if id.Node != n.cfg.ID {
		return nil, WrongNode(id)
	}
	key := token.KeyFrom(n.NMKey(id.Attempt, id.KeyID))
	if key.IsZero() {
		return nil, refuse(
			creel.ErrInvalidToken,
			"Given NMToken for application : %s seems to have been generated illegally: key %d is not known",
			id.Attempt,
			id.KeyID,
		)
	}
	return key.Password(identifier), nil
}

// WrongNode is the error for an NMToken of a node that is not here.
func WrongNode(id token.NM) error {
	return refuse(
		creel.ErrInvalidToken,
		"Given NMToken for application : %s is not valid for current node manager. The token is for %s",
		id.Attempt,
		id.Node,
	)
}

// CheckContainer returns the content of a container token, or the reason why this node rejects it: its signature or
// its node is wrong.
func (n *Node) CheckContainer(t token.Token) (token.Container, error) {
	id, err := token.ParseContainer(t.Identifier)
	if err != nil {
		return id, err
	}
	key := token.KeyFrom(n.ContainerKey(id.KeyID))
	switch {
	case key.IsZero() || !key.Verify(t.Identifier, t.Password):
		return id, refuse(
			creel.ErrInvalidToken,
			"Given Container %s seems to have an illegally generated token.",
			id.ID,
		)
	case id.Node != n.cfg.ID:
		return id, refuse(
			creel.ErrInvalidToken,
			"Given Container %s identifier is not valid for current Node manager. Expected : %s Found : %s",
			id.ID,
			n.cfg.ID,
			id.Node,
		)
	}
	return id, nil
}

// StartOf returns the event that starts a container with a valid token, or the reason why the caller may not start
// it.
func StartOf(who token.NM, id token.Container, launch *pb.ContainerLaunchContextProto) (Start, error) {
	switch {
	case id.ID.Attempt.Application != who.Attempt.Application:
		return Start{}, refuse(
			creel.ErrNotPermitted,
			"Unauthorized request to start container.\nNMToken for application attempt : %s was used for starting "+
				"container with container token issued for application attempt : %s",
			who.Attempt,
			id.ID.Attempt,
		)
	case len(launch.GetServiceData()) > 0 && !knownServices(launch):
		return Start{}, refuse(ErrAuxService, "The auxService:%s does not exist", launch.GetServiceData()[0].GetKey())
	}
	if tokens := launch.GetTokens(); len(tokens) > 0 {
		if _, err := token.ParseCredentials(tokens); err != nil {
			return Start{}, err
		}
	}
	for _, r := range launch.GetLocalResources() {
		if v := r.GetValue(); v.GetResource() == nil || v.Type == nil || v.Visibility == nil {
			return Start{}, refuse(
				creel.ErrInvalidRequest,
				"Null resource URL, type or visibility for local resource %s",
				r.GetKey(),
			)
		}
	}
	c := Container{
		ID:        id.ID,
		User:      id.User,
		Resource:  id.Resource,
		Priority:  id.Priority,
		Version:   id.Version,
		Execution: id.Execution,
		AM:        id.AM,
		RequestID: id.AllocationRequestID,
		Created:   id.Created,
	}
	return Start{Container: c, Launch: launch, RM: id.RMIdentifier, Expires: id.Expires, NMKey: who.KeyID}, nil
}

// knownServices: a simulated node accepts the shuffle services, which do nothing.
func knownServices(launch *pb.ContainerLaunchContextProto) bool {
	for _, s := range launch.GetServiceData() {
		if s.GetKey() != "mapreduce_shuffle" && s.GetKey() != "spark_shuffle" {
			return false
		}
	}
	return true
}

// MayTouch rejects a caller that names a container of another application. verb is the requested action, in YARN's
// words.
func MayTouch(who token.NM, id creel.ContainerID, verb string) error {
	if id.Attempt.Application == who.Attempt.Application {
		return nil
	}
	return refuse(creel.ErrNotPermitted, "%s attempted to %s non-application container : %s", who.Attempt, verb, id)
}
