// SPDX-License-Identifier: Apache-2.0
// What unit tests look at beside the public names; bundled by ../run into dist-test/.

export { endCauseOf } from '../../src/errors.js'
export { pauseBefore } from '../../src/net/api.js'
export { Deadline } from '../../src/net/deadline.js'
export { envelope, FrameReader, LineReader, MAX_FRAME } from '../../src/net/frames.js'
export { branchesOf, statusOf } from '../../src/sandbox/git_status.js'
export { BuildContext, globPattern } from '../../src/template/context.js'
