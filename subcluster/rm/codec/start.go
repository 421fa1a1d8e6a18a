// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// The ResourceManager adds these variables to an AM's environment.
const (
	envProxyBase  = "APPLICATION_WEB_PROXY_BASE"
	envSubmitTime = "APP_SUBMIT_TIME_ENV"
)

// StartAM returns the request that starts an AM on its node: the client's launch context with the AM's token and two
// added variables.
func StartAM(a *rm.LaunchAM, t *Mint, amrm token.Token) (*pb.StartContainersRequestProto, error) {
	c := ContextOf(a.Context)
	if c == nil {
		return nil, fmt.Errorf("%s has no submission context", a.Attempt)
	}
	spec := c.GetAmContainerSpec().CloneVT()
	var credentials token.Credentials
	if len(spec.GetTokens()) > 0 {
		var err error
		if credentials, err = token.ParseCredentials(spec.GetTokens()); err != nil {
			return nil, err
		}
	}
	spec.Tokens = credentials.With("", amrm).Append(nil)
	spec.Environment = setEnv(spec.Environment, envProxyBase, "/proxy/"+a.Attempt.Application.String())
	spec.Environment = setEnv(spec.Environment, envSubmitTime, strconv.FormatInt(Millis(a.Submitted), 10))
	grant := a.Container
	grant.AM = true
	return &pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{{
		ContainerLaunchContext: spec, ContainerToken: t.Container(&grant).Proto(),
	}}}, nil
}

// StartRefusal returns the node's reason for not starting the requested container, or nil. If the container already
// runs, it is nil: the answer to an earlier call was lost.
func StartRefusal(answer *pb.StartContainersResponseProto, id creel.ContainerID) *pb.SerializedExceptionProto {
	for _, f := range answer.GetFailedRequests() {
		if pb.ToContainerID(f.GetContainerId()) == id &&
			!strings.Contains(f.GetException().GetMessage(), "already is running on this node") {
			return f.GetException()
		}
	}
	return nil
}

func setEnv(env []*pb.StringStringMapProto, key, value string) []*pb.StringStringMapProto {
	for _, e := range env {
		if e.GetKey() == key {
			e.Value = &value
			return env
		}
	}
	return append(env, &pb.StringStringMapProto{Key: &key, Value: &value})
}
