package route

import (
	"net/http"

	"tranca"
	"tranca/internal/api"
)

func processes() []Route {
	const group = "Processes"
	return []Route{
		{
			Pattern: api.RouteProcesses, Name: "listProcesses", Group: group,
			Summary: "List what was started in a sandbox, oldest first",
			About:   "The last ones that have ended are listed too.",
			Query:   []Param{{Name: "tag", MaxBytes: 256, About: "Only those with this tag."}},
			Answers: answer[api.ProcessList](http.StatusOK, "The programs."),
		},
		{
			Pattern: api.RouteStart, Name: "startProcess", Group: group,
			Summary: "Start a program that outlives the call",
			Body:    body[api.StartRequest](false),
			Answers: answer[tranca.ProcessInfo](http.StatusCreated, "It runs; the header Location says where."),
			Codes:   []api.Code{api.CodeUnsupported},
		},
		{
			Pattern: api.RouteProcess, Name: "getProcess", Group: group,
			Summary: "Read what is known of a program",
			Query: []Param{{
				Name: "wait_ms", Kind: Number, Max: MaxWait, Default: "0",
				About: "Answer when it has ended, or after so many milliseconds.",
			}},
			Answers: answer[tranca.ProcessInfo](http.StatusOK, "The program."),
		},
		{
			Pattern: api.RouteOutput, Name: "followOutput", Group: group,
			Summary: "Read the output of a program",
			About:   "A stream of events: process, then output and what of it is no longer kept (dropped), then exit or error. Where the header Accept names neither type it comes as " + api.TypeEvents + ".",
			Query: []Param{
				offset("stdout_from", "Begin at this byte of standard output."),
				offset("stderr_from", "Begin at this byte of standard error."),
				{Name: "follow", Kind: Flag, Default: "true", About: "Go on until the program ends. Otherwise the stream ends with what there is."},
			},
			Answers: media(http.StatusOK, "The output.", api.TypeEvents, api.TypeFrames),
		},
		{
			Pattern: api.RouteStdin, Name: "writeStdin", Group: group,
			Summary: "Write to a program's standard input",
			About:   "A body of a known length of at most 1 MiB is written whole, never mixed with another's; a longer one, or one whose length isn't known, is written piece by piece as it comes.",
			Query:   []Param{{Name: "close", Kind: Flag, Default: "false", About: "End the input after it."}},
			Body:    &Body{Media: []string{api.TypeBytes}, Optional: true},
			Answers: answer[api.InputAnswer](http.StatusOK, "It was taken."),
		},
		{
			Pattern: api.RouteSignal, Name: "signalProcess", Group: group,
			Summary: "Send a signal to a program",
			Body:    body[api.SignalRequest](false),
			Answers: empty("It was sent."),
		},
		{
			Pattern: api.RouteResize, Name: "resizeTerminal", Group: group,
			Summary: "Change the size of a program's terminal",
			Body:    body[tranca.TerminalSize](false),
			Answers: empty("It has the new size."), Codes: []api.Code{api.CodeUnsupported},
		},
	}
}

var fileCodes = []api.Code{api.CodeNoSpace, api.CodeExists, api.CodeUnsupported}

func files() []Route {
	all := append(contents(), folders()...)
	for i := range all {
		all[i].Group, all[i].Codes = "Files", fileCodes
	}
	return all
}

func contents() []Route {
	return []Route{
		{
			Pattern: api.RouteRead, Name: "readFile", Summary: "Read a regular file",
			About:   "The length is told ahead only where the file is small. A transfer that fails in the middle breaks the connection; offset goes on where it ended.",
			Query:   []Param{path(), offset("offset", "Begin at this byte.")},
			Answers: media(http.StatusOK, "The bytes.", api.TypeBytes),
		},
		{
			Pattern: api.RouteWrite, Name: "writeFile", Summary: "Make or replace a regular file",
			About: "With offset an upload that broke off goes on: what the file holds from there on is replaced. On an error it may hold a part.",
			Query: []Param{
				path(),
				{Name: "mode", Kind: Octal, Default: "0644", About: "Permission bits in octal."},
				{Name: "offset", Kind: Number, Max: 1<<63 - 1, About: "Go on at this byte of a file that is there; 0 makes it."},
			},
			Body:    &Body{Media: []string{api.TypeBytes}, Optional: true},
			Answers: answer[api.WriteAnswer](http.StatusOK, "It was written."),
		},
		{
			Pattern: api.RouteArchiveOut, Name: "readArchive", Summary: "Read a folder or file as a tar archive",
			About:   "A transfer that fails in the middle breaks the connection.",
			Query:   []Param{path()},
			Answers: media(http.StatusOK, "The archive.", api.TypeTar),
		},
		{
			Pattern: api.RouteArchiveIn, Name: "writeArchive", Summary: "Unpack a tar archive into a folder",
			About:   "Entries that lead out of the folder, and all that are no file, folder or symbolic link, are refused. On an error a part may be unpacked.",
			Query:   []Param{path()},
			Body:    &Body{Media: []string{api.TypeTar, api.TypeBytes}},
			Answers: answer[api.WriteAnswer](http.StatusOK, "It was unpacked."),
		},
	}
}

func folders() []Route {
	return []Route{
		{
			Pattern: api.RouteStat, Name: "statFile", Summary: "Read what a path is",
			Query:   []Param{path()},
			Answers: answer[api.FileInfo](http.StatusOK, "It is there. A symbolic link is not followed."),
		},
		{
			Pattern: api.RouteFiles, Name: "listFiles", Summary: "List a folder",
			About: "In lexical order, parents first; at most 100,000 entries.",
			Query: []Param{
				path(),
				{Name: "depth", Kind: Number, Min: 1, Max: 1000, Default: "1", About: "How many levels of folders."},
			},
			Answers: answer[api.FileList](http.StatusOK, "What is in it."),
		},
		{
			Pattern: api.RouteRemove, Name: "removeFile", Summary: "Remove a path with all below it",
			Query:   []Param{path()},
			Answers: empty("It is not there."),
		},
		{
			Pattern: api.RouteMakeDir, Name: "makeFolder", Summary: "Make a folder and its parents",
			Body:    body[api.PathRequest](false),
			Answers: answer[api.FileInfo](http.StatusCreated, "It is there."),
		},
		{
			Pattern: api.RouteMove, Name: "moveFile", Summary: "Rename a path",
			Body:    body[api.MoveRequest](false),
			Answers: answer[api.FileInfo](http.StatusOK, "It has the new name."),
		},
		{
			Pattern: api.RouteWatch, Name: "watchFolder", Summary: "Watch a folder",
			About: "A stream of events: watching when changes from then on are told, then file for each of them, then error. After a file event of kind overflow changes were missed: list the folder again.",
			Query: []Param{
				path(),
				{Name: "recursive", Kind: Flag, Default: "false", About: "And all below it."},
			},
			Answers: media(http.StatusOK, "The changes.", api.TypeEvents, api.TypeFrames),
		},
	}
}

func ports() []Route {
	return []Route{{
		Pattern: api.RoutePort, Name: "connectPort", Group: "Ports",
		Summary: "Connect to a TCP port that a program in the sandbox listens at",
		About:   "The request has the headers Connection: Upgrade and Upgrade: " + api.UpgradePort + ". After the answer 101 the connection carries plain bytes both ways; each side may end its direction first.",
		Answers: []Answer{{Status: http.StatusSwitchingProtocols, About: "The connection is the port's."}},
		Codes:   []api.Code{api.CodeUnsupported},
	}}
}
