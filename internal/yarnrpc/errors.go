// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
)

const exceptions = "org.apache.hadoop.yarn.exceptions."

// Java classes of the errors that a YARN server answers (Class.getName() form). All of them are YarnExceptions.
const (
	ClassYarn                = exceptions + "YarnException"
	ClassApplicationNotFound = exceptions + "ApplicationNotFoundException"
	ClassAttemptNotFound     = exceptions + "ApplicationAttemptNotFoundException"
	ClassContainerNotFound   = exceptions + "ContainerNotFoundException"
	ClassMasterNotRegistered = exceptions + "ApplicationMasterNotRegisteredException"
	// registered twice, wrong response id: ends the AM
	ClassInvalidMasterRequest = exceptions + "InvalidApplicationMasterRequestException"
	ClassInvalidResource      = exceptions + "InvalidResourceRequestException"
	ClassInvalidLabel         = exceptions + "InvalidLabelResourceRequestException"
	ClassInvalidBlacklist     = exceptions + "InvalidResourceBlacklistRequestException"
	ClassInvalidRelease       = exceptions + "InvalidContainerReleaseException"
	// container token from another epoch of the ResourceManager
	ClassInvalidContainer         = exceptions + "InvalidContainerException"
	ClassInvalidAuxService        = exceptions + "InvalidAuxServiceException"
	ClassNodeNotYetReady          = exceptions + "NMNotYetReadyException" // NodeManagers' clients repeat the call
	ClassApplicationIDNotProvided = exceptions + "ApplicationIdNotProvidedException"
	ClassProfilesNotEnabled       = exceptions + "ResourceProfilesNotEnabledException"
	ClassFeatureNotEnabled        = exceptions + "YARNFeatureNotEnabledException"
	classIOException              = "java.io.IOException"
	// Every client throws it to the user, and none repeats the call. It is not an IOException: some clients repeat
	// those.
	ClassReadOnly = "java.lang.IllegalStateException"
)

// answers maps kinds to the class in the answer; the first kind found in an error wins. Kinds outside this list (no
// such queue, no such node, a conflict, a stale value) become plain YarnExceptions. Clients report those to the user
// and never repeat the call.
var answers = []struct {
	kind  error
	class string
}{
	{creel.ErrApplicationNotFound, ClassApplicationNotFound},
	{creel.ErrAttemptNotFound, ClassAttemptNotFound},
	{creel.ErrContainerNotFound, ClassContainerNotFound},
	{creel.ErrNotRegistered, ClassMasterNotRegistered},
	{creel.ErrInvalidLabel, ClassInvalidLabel},
	{creel.ErrInvalidResource, ClassInvalidResource},
	{creel.ErrNotPermitted, hrpc.ClassAccessControl},
	{creel.ErrInvalidToken, hrpc.ClassInvalidToken},
	{creel.ErrNotEnabled, ClassFeatureNotEnabled},
	{creel.ErrReadOnly, ClassReadOnly},
	{creel.ErrStandby, hrpc.ClassStandby},
	{creel.ErrBusy, hrpc.ClassRetriable},
	{creel.ErrUnavailable, hrpc.ClassRetriable},
	{creel.ErrNoSubcluster, hrpc.ClassRetriable},
	{context.DeadlineExceeded, hrpc.ClassRetriable},
	{context.Canceled, hrpc.ClassRetriable},
}

// kinds maps the class in another server's answer to a kind. A class outside this list has no kind.
var kinds = map[string]error{
	ClassYarn:                     creel.ErrInvalidRequest, // understood and rejected; repeating it is useless
	ClassApplicationNotFound:      creel.ErrApplicationNotFound,
	ClassAttemptNotFound:          creel.ErrAttemptNotFound,
	ClassContainerNotFound:        creel.ErrContainerNotFound,
	ClassMasterNotRegistered:      creel.ErrNotRegistered,
	ClassInvalidMasterRequest:     creel.ErrInvalidRequest,
	ClassInvalidResource:          creel.ErrInvalidResource,
	ClassInvalidLabel:             creel.ErrInvalidLabel,
	ClassInvalidBlacklist:         creel.ErrInvalidRequest,
	ClassInvalidRelease:           creel.ErrInvalidRequest,
	ClassInvalidContainer:         creel.ErrInvalidToken,
	ClassInvalidAuxService:        creel.ErrInvalidRequest,
	ClassNodeNotYetReady:          creel.ErrUnavailable,
	ClassApplicationIDNotProvided: creel.ErrInvalidRequest,
	ClassProfilesNotEnabled:       creel.ErrNotEnabled,
	ClassFeatureNotEnabled:        creel.ErrNotEnabled,

	exceptions + "SchedulerInvalidResoureRequestException": creel.ErrInvalidResource, // Hadoop's spelling
	exceptions + "ResourceNotFoundException":               creel.ErrInvalidResource,
	exceptions + "ConfigurationException":                  creel.ErrInvalidRequest,
	exceptions + "YarnRuntimeException":                    creel.ErrInvalidRequest,
	"java.lang.IllegalArgumentException":                   creel.ErrInvalidRequest,

	ClassReadOnly:           creel.ErrReadOnly,
	hrpc.ClassRetriable:     creel.ErrBusy,
	hrpc.ClassStandby:       creel.ErrStandby,
	hrpc.ClassAccessControl: creel.ErrNotPermitted,
	hrpc.ClassAuthorization: creel.ErrNotPermitted,
	// A ResourceManager wraps this in a YarnException if an ACL denies access.
	"java.security.AccessControlException": creel.ErrNotPermitted,
	hrpc.ClassInvalidToken:                 creel.ErrInvalidToken,
	hrpc.ClassSasl:                         creel.ErrInvalidToken,
	hrpc.ClassNoSuchMethod:                 creel.ErrNotEnabled,
	hrpc.ClassNoSuchProtocol:               creel.ErrNotEnabled,
	hrpc.ClassVersionMismatch:              creel.ErrNotEnabled,
	hrpc.ClassInvalidProtobuf:              creel.ErrInvalidRequest,

	classIOException:                                 creel.ErrUnavailable,
	"java.io.EOFException":                           creel.ErrUnavailable,
	"java.net.ConnectException":                      creel.ErrUnavailable,
	"java.net.NoRouteToHostException":                creel.ErrUnavailable,
	"java.net.UnknownHostException":                  creel.ErrUnavailable,
	"java.net.SocketException":                       creel.ErrUnavailable,
	"java.net.SocketTimeoutException":                creel.ErrUnavailable,
	"org.apache.hadoop.net.ConnectTimeoutException":  creel.ErrUnavailable,
	"org.apache.hadoop.ipc.CallQueueTooBigException": creel.ErrBusy,
	"java.util.concurrent.TimeoutException":          creel.ErrUnavailable,
}

// KindOf maps the Java class of a remote error to the kind that errors.Is finds; nil if the class has none. It is the
// KindOf of hrpc.ClientConfig.
func KindOf(class string) error { return kinds[class] }

// Exception is an error whose answer has a fixed Java class, whatever its kind.
type Exception struct {
	Class string
	Err   error
}

// Throw makes an error that is answered as err with a Java class.
func Throw(class string, err error) error { return &Exception{Class: class, Err: err} }

func (e *Exception) Error() string { return e.Err.Error() }

func (e *Exception) Unwrap() error { return e.Err }

// ErrorOf converts a creel error into a server's answer. It is the ErrorOf of hrpc.Config. An exception answered by
// another server retains its own class. The result is never java.io.IOException: Hadoop's clients would repeat the call
// for fifteen minutes.
func ErrorOf(err error) *hrpc.Error {
	var already *hrpc.Error
	if errors.As(err, &already) && already.Class != classIOException {
		return already
	}
	return &hrpc.Error{Class: classOf(err), Message: err.Error(), Detail: hrpc.DetailApplication}
}

func classOf(err error) string {
	var thrown *Exception
	if errors.As(err, &thrown) && thrown.Class != "" && thrown.Class != classIOException {
		return thrown.Class
	}
	var remote *hrpc.RemoteError
	if errors.As(err, &remote) {
		switch {
		case remote.Fatal, remote.Detail > hrpc.DetailApplication, remote.Class == "", remote.Class == classIOException:
			// The error concerns this process's connection to that server, not the caller's request.
			return ClassYarn
		}
		return remote.Class
	}
	var transport *hrpc.TransportError
	if errors.As(err, &transport) {
		if transport.Sent {
			return ClassYarn // the call may have been served: do not invite a repetition
		}
		return hrpc.ClassRetriable
	}
	for _, a := range answers {
		if errors.Is(err, a.kind) {
			return a.class
		}
	}
	return ClassYarn
}

// ToSerialized encodes an error for use inside a message, such as failed containers in a NodeManager's answer.
func ToSerialized(err error) *yarnpb.SerializedExceptionProto {
	e := ErrorOf(err)
	return &yarnpb.SerializedExceptionProto{
		Message:   proto.String(e.Message),
		ClassName: proto.String(e.Class),
		Trace:     proto.String(""),
	}
}

// FromSerialized decodes the error inside a message; nil for nil. If its class is a plain YarnException or unknown
// here, the nearest cause with a known class determines the kind.
func FromSerialized(p *yarnpb.SerializedExceptionProto) error {
	if p == nil {
		return nil
	}
	err := &hrpc.RemoteError{
		Class:   p.GetClassName(),
		Message: p.GetMessage(),
		Detail:  hrpc.DetailApplication,
		Kind:    KindOf(p.GetClassName()),
	}
	for depth := 0; p != nil && depth < 16; p, depth = p.GetCause(), depth+1 {
		if kind := KindOf(p.GetClassName()); kind != nil && p.GetClassName() != ClassYarn {
			err.Kind = kind
			break
		}
	}
	return err
}
