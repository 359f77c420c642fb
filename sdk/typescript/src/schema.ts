// SPDX-License-Identifier: Apache-2.0
// Names of types that programs on ApiClient import. Routes and schemas are not spelled out here: the server's own
// description of them is the reference.

/** Routes of the control plane, by path. */
export interface paths {
  [path: string]: any
}

/** Schemas of the control plane, by name. */
export interface components {
  schemas: { [name: string]: any }
  responses: { [name: string]: any }
  parameters: { [name: string]: any }
  requestBodies: never
  headers: never
  pathItems: never
}
