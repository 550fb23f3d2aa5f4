package server

import "tranca/internal/api"

// handlers answer the calls, by their patterns.
var handlers = map[string]handler{
	api.RouteHealth:      health,
	api.RouteMetrics:     metrics,
	api.RouteOpenAPI:     document,
	api.RouteInfo:        info,
	api.RouteRun:         runFresh,
	api.RouteCancelRun:   cancelRun,
	api.RouteChanges:     listChanges,
	api.RouteSandboxRun:  runInside,
	api.RouteCreate:      createSandbox,
	api.RouteList:        listSandboxes,
	api.RouteGet:         getSandbox,
	api.RouteDelete:      destroySandbox,
	api.RouteKeepAlive:   keepAlive,
	api.RouteEnvironment: setEnvironment,
	api.RouteProcesses:   listProcesses,
	api.RouteStart:       startProcess,
	api.RouteProcess:     getProcess,
	api.RouteOutput:      followOutput,
	api.RouteStdin:       writeStdin,
	api.RouteSignal:      signalProcess,
	api.RouteResize:      resizeTerminal,
	api.RouteRead:        readFile,
	api.RouteWrite:       writeFile,
	api.RouteStat:        statFile,
	api.RouteFiles:       listFiles,
	api.RouteRemove:      removeFile,
	api.RouteMakeDir:     makeFolder,
	api.RouteMove:        moveFile,
	api.RouteArchiveOut:  readArchive,
	api.RouteArchiveIn:   writeArchive,
	api.RouteWatch:       watchFolder,
	api.RoutePort:        connectPort,
}
